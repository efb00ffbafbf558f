package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"joinbench/internal/kafkatest"
	"joinbench/internal/oracle"
	"joinbench/results"
)

// asProgram in the environment of this test binary makes it joinbench itself: tests that kill a process start that.
const asProgram = "TEST_AS_JOINBENCH"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		asArm()
		asChild()
		main() // exits
	}
	for _, v := range os.Environ() { // the program reads them, and tests want none
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "JOINBENCH_") && name != kafkatest.Env {
			_ = os.Unsetenv(name)
		}
	}
	// States of tests are small and many: memory is the place for them where there is one.
	if dir, err := os.MkdirTemp("/dev/shm", "joinbench-test-"); err == nil && os.Getenv("TMPDIR") == "" {
		_ = os.Setenv("TMPDIR", dir)
		code := m.Run()
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// outcome is what a call of the program left.
type outcome struct {
	code     int
	out, err string
}

// joinbench calls the program in this process, without standard input.
func joinbench(args ...string) outcome { return joinbenchWith(strings.NewReader(""), args...) }

func joinbenchWith(in io.Reader, args ...string) outcome {
	var out, err bytes.Buffer
	code := run(args, streams{in, &out, &err})
	return outcome{code, out.String(), err.String()}
}

// want fails unless the call ended with a code and its standard error has all of the texts.
func (o outcome) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if o.code != code {
		t.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", o.code, code, o.out, o.err)
	}
	for _, text := range texts {
		if !strings.Contains(o.err, text) {
			t.Fatalf("standard error lacks %q: %s", text, o.err)
		}
	}
}

// lines of the standard output.
func (o outcome) lines(t *testing.T) []string {
	t.Helper()
	lines, err := oracle.ReadLines([]byte(o.out))
	if err != nil {
		t.Fatalf("standard output: %v", err)
	}
	return lines
}

// place is a directory with files.
type place struct {
	t   *testing.T
	dir string
}

func newPlace(t *testing.T) place { return place{t, t.TempDir()} }

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

// write makes a file of lines and returns its path.
func (p place) write(name string, lines ...string) string {
	p.t.Helper()
	text := ""
	if len(lines) > 0 {
		text = strings.Join(lines, "\n") + "\n"
	}
	return p.writeBytes(name, []byte(text))
}

func (p place) writeBytes(name string, data []byte) string {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), data, 0o644); err != nil {
		p.t.Fatal(err)
	}
	return p.path(name)
}

func (p place) read(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(data)
}

// lines of a file.
func (p place) lines(name string) []string {
	p.t.Helper()
	lines, err := oracle.ReadLines([]byte(p.read(name)))
	if err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	return lines
}

func (p place) stats(name string) results.Counters {
	p.t.Helper()
	var c results.Counters
	if err := json.Unmarshal([]byte(p.read(name)), &c); err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	return c
}

// checkSums: the fates add up, and so do the results.
func checkSums(t *testing.T, c *results.Counters) {
	t.Helper()
	if c.A.Fates() != c.A.Read || c.B.Fates() != c.B.Read {
		t.Errorf("read %d and %d, with a fate %d and %d", c.A.Read, c.B.Read, c.A.Fates(), c.B.Fates())
	}
	if c.Outputs != c.Matches || c.Probes != c.B.Accepted {
		t.Errorf("%d outputs of %d matches; %d probes of %d accepted B", c.Outputs, c.Matches, c.Probes, c.B.Accepted)
	}
}

// program is joinbench as a process of its own.
type program struct {
	*exec.Cmd
	t        *testing.T
	out, err bytes.Buffer
}

// startProgram starts it; it is killed at the end of the test if it still runs.
func startProgram(t *testing.T, in io.Reader, args ...string) *program {
	t.Helper()
	p := newProgram(t, args)
	p.Stdin, p.Stdout = in, &p.out
	return p.start()
}

// startProgramTo starts it with its standard output in a file of the caller's.
func startProgramTo(t *testing.T, out *os.File, args ...string) *program {
	t.Helper()
	p := newProgram(t, args)
	p.Stdout = out
	return p.start()
}

func newProgram(t *testing.T, args []string) *program {
	p := &program{Cmd: exec.Command(os.Args[0], args...), t: t}
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stderr = &p.err
	return p
}

func (p *program) start() *program {
	p.t.Helper()
	if err := p.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// end waits for the process.
func (p *program) end() outcome {
	err := p.Wait()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		p.t.Fatal(err)
	}
	return outcome{p.ProcessState.ExitCode(), p.out.String(), p.err.String()}
}

// signal sends a signal; the process may have ended by itself.
func (p *program) signal(s os.Signal) {
	if err := p.Process.Signal(s); err != nil && err != os.ErrProcessDone {
		p.t.Fatal(err)
	}
}

// waitFor waits until something is so, which no signal tells: what another process does to files.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

func size(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}
