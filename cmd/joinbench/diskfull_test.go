package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"joinbench/buckets"
	"joinbench/results"
)

// smallDisk is a file system in memory, of a size that tests fill (B46).
type smallDisk struct {
	t   *testing.T
	dir string
}

// diskSize is what cases.md asks for.
const diskSize = 64 << 20

// inNamespace in the environment: this process is its user namespace's root, and may mount for itself.
const inNamespace = "TEST_IN_NAMESPACE"

// withSmallDisk runs a test that needs a mount: here if this process may do that, else in a child with a user namespace, else
// not at all.
func withSmallDisk(t *testing.T, test func(d *smallDisk)) {
	t.Helper()
	d := &smallDisk{t, t.TempDir()}
	err := unix.Mount("tmpfs", d.dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", diskSize))
	if err == nil {
		t.Cleanup(func() {
			if err := unix.Unmount(d.dir, 0); err != nil {
				t.Errorf("somebody still holds a file of the disk: %v", err)
				_ = unix.Unmount(d.dir, unix.MNT_DETACH)
			}
		})
		test(d)
		return
	}
	if os.Getenv(inNamespace) != "" || !errors.Is(err, syscall.EPERM) {
		t.Skipf("no tmpfs can be mounted here, not in a user namespace either: %v", err)
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", fmt.Sprintf("-test.short=%v", testing.Short()))
	child.Env = append(os.Environ(), inNamespace+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	out, err := child.CombinedOutput()
	switch _, exited := err.(*exec.ExitError); {
	case err != nil && !exited:
		t.Skipf("a tmpfs can be mounted neither by this user nor in a user namespace: %v", err)
	case err != nil:
		t.Fatalf("in a user namespace: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP: "+t.Name()+" "):
		t.Skipf("in a user namespace:\n%s", out)
	}
	t.Logf("in a user namespace:\n%s", out)
}

func (d *smallDisk) path(name string) string { return filepath.Join(d.dir, name) }

// resize changes the size of the whole disk.
func (d *smallDisk) resize(bytes int64) {
	d.t.Helper()
	if err := unix.Mount("tmpfs", d.dir, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", bytes)); err != nil {
		d.t.Fatal(err)
	}
}

// free is what is left, by the file system's word.
func (d *smallDisk) free() int64 {
	d.t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		d.t.Fatal(err)
	}
	return int64(st.Bavail) * st.Bsize
}

// leave puts a file there, or shortens the one that was, so that so many bytes are free.
func (d *smallDisk) leave(bytes int64) {
	d.t.Helper()
	f, err := os.OpenFile(d.path("ballast"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	have := size(d.path("ballast"))
	switch more := d.free() - bytes; {
	case have+more < 0:
		d.t.Fatalf("%d bytes cannot be free here", bytes)
	case more < 0:
		err = f.Truncate(have + more)
	case more > 0:
		err = unix.Fallocate(int(f.Fd()), 0, have, more)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// wide is a join of 50 minutes whose window is 12 minutes long. A is read so far ahead of B, and nothing is dropped before B
// has come as far: more than half of A is in the state by then. Each tenth B has a partner.
type wide struct {
	p     place
	conf  string
	whole string
	stats results.Counters
}

const wideConf = `a: {key: $.id, time: $.t, keep: [$.v]}
b: {key: $.id, time: $.t, keep: [$.id]}
window: {before: 12m, after: 1s}
max_spread: 13m
state: {buckets: 16, width: %s, tasks: %d, memory: %s, sync: %s}
`

// newWide writes n records a side; those of A are as large as their projection.
func newWide(t *testing.T, n int) *wide {
	w := &wide{p: newPlace(t)}
	var a, b strings.Builder
	pad := strings.Repeat("0123456789", 50)
	for i := range n {
		at := 1_300_000*990_000 + i*50*60_000/n // a bucket of 16.5 minutes begins here
		fmt.Fprintf(&a, "{\"id\":\"k%d\",\"t\":%d,\"v\":\"%s%d\"}\n", i, at, pad, i)
		partner := i
		if i%10 != 0 {
			partner += n // nobody
		}
		fmt.Fprintf(&b, "{\"id\":\"k%d\",\"t\":%d}\n", partner, at)
	}
	w.p.writeBytes("a", []byte(a.String()))
	w.p.writeBytes("b", []byte(b.String()))
	w.configure("3m", 1, "16MiB", "none")
	joinbench(w.args(w.p.path("whole"), w.p.path("state"), w.p.path("whole-stats"))...).want(t, 0)
	w.whole, w.stats = w.p.read("whole"), w.p.stats("whole-stats")
	if w.stats.Outputs != int64(n/10) || w.stats.A.Late != 0 {
		t.Fatalf("counters %+v", w.stats)
	}
	if err := os.RemoveAll(w.p.path("state")); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *wide) configure(width string, tasks int, memory, sync string) {
	w.conf = w.p.write("join.yaml", fmt.Sprintf(wideConf, width, tasks, memory, sync))
}

func (w *wide) args(out, state, stats string) []string {
	args := []string{"join", "-c", w.conf, "--a", w.p.path("a"), "--b", w.p.path("b"), "--out", out, "--stats", stats, "--progress", "none"}
	if state != "" {
		args = append(args, "--state-dir", state)
	}
	return args
}

// wantFull fails unless a program ended with 1 and one line that names what is full and what to do next.
func (o outcome) wantFull(t *testing.T, what string) {
	t.Helper()
	o.want(t, results.ExitFailed, "joinbench: the disk of "+what+" is full: ", "free space and start the same command again", "o space left on device")
	if strings.Count(o.err, "\n") != 1 {
		t.Fatalf("the message is not one line: %s", o.err)
	}
	if o.out != "" {
		t.Fatalf("standard output: %s", o.out)
	}
}

// finish starts the same command again and holds what it leaves against the undisturbed run.
func (w *wide) finish(t *testing.T, args []string) {
	t.Helper()
	startProgram(t, nil, args...).end().want(t, 0)
	out, stats := args[slices.Index(args, "--out")+1], w.p.stats("stats")
	if data := readFile(t, out); string(data) != w.whole {
		t.Fatalf("the finished join has %d bytes of results, one that nothing disturbed %d, or others", len(data), len(w.whole))
	}
	checkSums(t, &stats)
	if stats.A != w.stats.A || stats.B != w.stats.B || stats.Outputs != w.stats.Outputs || stats.Matches != w.stats.Matches {
		t.Fatalf("counters\n got %+v\nwant %+v", stats, w.stats)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// committed reads the commit record of a stopped run, from a copy of its state: how many batches and bytes of results it
// names; nothing if it has none.
func committed(t *testing.T, state string) (batch, bytes int64) {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(state)); err != nil {
		t.Fatal(err)
	}
	shared := buckets.NewShared(buckets.SharedOptions{Memory: 1 << 20, Tasks: 1})
	defer shared.Close()
	store, err := buckets.OpenRocks(filepath.Join(to, "task-000"), shared)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	record, err := buckets.CommitRecord(store)
	if err != nil {
		t.Fatal(err)
	}
	if len(record) == 0 {
		return 0, 0
	}
	// The record ends with the sink's state: the lengths of the four outputs, that of the results first.
	batch, bytes = int64(binary.LittleEndian.Uint64(record[1:])), int64(binary.LittleEndian.Uint64(record[len(record)-32:]))
	others, err := filepath.Glob(filepath.Join(to, "task-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range others[1:] {
		store, err := buckets.OpenRocks(task, shared)
		if err != nil {
			t.Fatal(err)
		}
		if has, err := buckets.Journaled(store); err != nil || int64(has.Last) < batch {
			t.Errorf("the commit record names batch %d, %s has those up to %d (%v)", batch, filepath.Base(task), has.Last, err)
		}
		_ = store.Close()
	}
	return batch, bytes
}

// TestDiskFull is B46: the state's disk runs full while the join runs. It ends with 1 and says so, its commit record names
// no result that is not in the output, and with space again the same command finishes exactly.
func TestDiskFull(t *testing.T) {
	withSmallDisk(t, func(d *smallDisk) {
		w := newWide(t, 100_000)
		for _, c := range []struct {
			name         string
			width        string
			tasks        int
			memory, sync string
			free         int64  // at the start
			inside       bool   // the results are on the same disk
			while        string // what was being written
		}{
			{name: "filled", width: "3m", tasks: 1, memory: "16MiB", sync: "interval", free: diskSize},
			{name: "filled, results there too", width: "3m", tasks: 1, memory: "16MiB", sync: "batch", free: diskSize, inside: true},
			{name: "three tasks", width: "3m", tasks: 3, memory: "16MiB", sync: "none", free: diskSize, inside: true},
			// One bucket takes all: nothing is sealed, and the log is larger than the disk.
			{name: "log", width: "2h", tasks: 1, memory: "256MiB", sync: "none", free: 28 << 20, while: ".log: No space"},
			{name: "three logs", width: "2h", tasks: 3, memory: "256MiB", sync: "batch", free: 30 << 20},
			// The log has its place, and the first table does not find one. Which of the files meets the end of the disk is a matter
			// of who runs when: the run's table, the log, or a table of the journal.
			{name: "seal", width: "16m30s", tasks: 1, memory: "256MiB", sync: "none", free: 36 << 20, while: "No space left on device"},
		} {
			t.Run(c.name, func(t *testing.T) {
				if testing.Short() && c.name != "filled" && c.name != "three tasks" {
					t.Skip("short")
				}
				d := &smallDisk{t, d.dir}
				d.resize(diskSize)
				d.leave(c.free)
				w.configure(c.width, c.tasks, c.memory, c.sync)
				state, out := d.path("state"), w.p.path("out")
				if c.inside {
					out = d.path("out")
				}
				defer func() {
					for _, f := range []string{state, out, d.path("ballast")} {
						_ = os.RemoveAll(f)
					}
				}()
				args := w.args(out, state, w.p.path("stats"))
				o := startProgram(t, nil, args...).end()
				if what := "the state directory " + state; c.inside && strings.Contains(o.err, "output") {
					o.wantFull(t, "output "+out)
				} else {
					o.wantFull(t, what)
				}
				if !strings.Contains(o.err, c.while) {
					t.Errorf("it did not run full at %q: %s", c.while, o.err)
				}
				batch, bytes := committed(t, state)
				data := readFile(t, out)
				t.Logf("%sbatch %d and %d of %d bytes were committed, %d are there", o.err, batch, bytes, len(w.whole), len(data))
				if batch < 3 || bytes == 0 || bytes >= int64(len(w.whole)) {
					t.Errorf("the disk was full after batch %d and %d of %d bytes: not in the middle", batch, bytes, len(w.whole))
				}
				if int64(len(data)) < bytes || string(data[:bytes]) != w.whole[:bytes] {
					t.Fatalf("the commit record names %d bytes of results, %d are there, or others", bytes, len(data))
				}

				// Again without any space: as before, and nothing is worse afterwards.
				d.leave(0)
				startProgram(t, nil, args...).end().want(t, results.ExitFailed, "is full")
				if again, bytesNow := committed(t, state); again < batch || bytesNow < bytes {
					t.Errorf("the second attempt went back from batch %d to %d", batch, again)
				}
				d.resize(4 * diskSize)
				if err := os.Remove(d.path("ballast")); err != nil {
					t.Fatal(err)
				}
				w.finish(t, args)
			})
		}
	})
}

// TestDiskFullAtStart: with a little more space in each attempt the same command fails at every step of making a state and
// its first batches, and then finishes.
func TestDiskFullAtStart(t *testing.T) {
	withSmallDisk(t, func(d *smallDisk) {
		w := newWide(t, 6_000)
		for _, tasks := range []int{1, 3} {
			t.Run(fmt.Sprintf("tasks=%d", tasks), func(t *testing.T) {
				d := &smallDisk{t, d.dir}
				w.configure("3m", tasks, "1MiB", "none")
				state := d.path("state")
				args := w.args(w.p.path("out"), state, w.p.path("stats"))
				places := map[string]int{}
				for free := int64(0); ; free += 4<<10 + free/2&^4095 {
					d.leave(free)
					o := startProgram(t, nil, args...).end()
					if o.code == 0 {
						break
					}
					o.wantFull(t, "the state directory "+state)
					_, detail, _ := strings.Cut(o.err, " (")
					places[detail[:min(len(detail), 40)]]++
				}
				if len(places) < 4 {
					t.Errorf("it failed at few places: %v", places)
				}
				t.Logf("it failed at %v", places)
				if err := os.Remove(d.path("ballast")); err != nil {
					t.Fatal(err)
				}
				if w.p.read("out") != w.whole {
					t.Error("other results than those of one run")
				}
				if err := os.RemoveAll(state); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
}

// TestOutputDiskFull: the results have no space, the state has.
func TestOutputDiskFull(t *testing.T) {
	withSmallDisk(t, func(d *smallDisk) {
		w := newWide(t, 40_000)
		for _, tasks := range []int{1, 2} {
			t.Run(fmt.Sprintf("tasks=%d", tasks), func(t *testing.T) {
				d := &smallDisk{t, d.dir}
				w.configure("3m", tasks, "16MiB", "none")
				state, out := w.p.path("state"), d.path("out")
				args := w.args(out, state, w.p.path("stats"))
				d.leave(600 << 10)
				startProgram(t, nil, args...).end().wantFull(t, "output "+out)
				if batch, bytes := committed(t, state); batch == 0 || bytes == 0 || bytes > size(out) || string(readFile(t, out)[:bytes]) != w.whole[:bytes] {
					t.Errorf("batch %d and %d bytes were committed, %d are there, or others", batch, bytes, size(out))
				}
				d.leave(0)
				startProgram(t, nil, args...).end().wantFull(t, "output "+out)
				if err := os.Remove(d.path("ballast")); err != nil {
					t.Fatal(err)
				}
				w.finish(t, args)
				for _, f := range []string{state, out} {
					if err := os.RemoveAll(f); err != nil {
						t.Fatal(err)
					}
				}
			})
		}

		// A temporary state on a full disk: nothing stays behind.
		d.leave(1 << 20)
		t.Setenv("TMPDIR", d.dir)
		o := startProgram(t, nil, w.args(w.p.path("out"), "", w.p.path("stats"))...).end()
		o.want(t, results.ExitFailed, "the disk of the temporary state directory "+d.dir, "is full", "--state-dir")
		if left, err := os.ReadDir(d.dir); err != nil || len(left) != 1 {
			t.Errorf("left behind besides the ballast: %v %v", left, err)
		}
	})
}

// TestRunDiskFull: a benchmark whose directory runs full fails with 1 and a record that says why; with space again --resume
// finishes it, and every pair is right.
func TestRunDiskFull(t *testing.T) {
	withSmallDisk(t, func(d *smallDisk) {
		p := newPlace(t)
		p.write("small.yaml", strings.Replace(smallProfile, "sync: none", "sync: none, memory: 1MiB", 1))
		args := []string{"run", "--config", p.path("small.yaml"), "--out", p.path("r.json"), "--progress", "none", "--dir", d.path("data")}
		records, resume := 0, false
		for free := int64(0); ; free += 16<<10 + free/2&^4095 {
			d.leave(free)
			o := startProgram(t, nil, args...).end()
			if o.code == 0 {
				break
			}
			said := o.err
			if o.out != "" { // it came to a record
				said, records = strings.Join(strings.Fields(o.out), " "), records+1
				rec := p.record()
				if rec.Verdict.Status != results.StatusFailed || rec.Verdict.ExitCode != results.ExitFailed || len(rec.Verdict.Reasons) != 1 || rec.Run.Complete {
					t.Fatalf("verdict %+v", rec.Verdict)
				}
			}
			if o.code != results.ExitFailed || !strings.Contains(said, "the disk of the state directory "+d.path("data")+" is full: free space and start the same command again") {
				t.Fatalf("%d bytes free: exit code %d, %s", free, o.code, said)
			}
			if !resume && strings.Contains(said, "again with --resume") {
				args, resume = append(args, "--resume"), true
			}
		}
		if !resume || records < 2 {
			t.Errorf("of the attempts that failed %d left a record", records)
		}
		checkRight(t, "the resumed run", p.record())

		// No place for the record: what was measured is printed all the same.
		d.leave(0)
		o := startProgram(t, nil, "run", "--config", p.path("small.yaml"), "--out", d.path("r.json"), "--progress", "none").end()
		o.want(t, results.ExitFailed, "the record is not saved, only printed: ", d.path("r.json"), "no space left on device")
		if !strings.Contains(o.out, "pairs expected") {
			t.Errorf("it printed %q", o.out)
		}
		if left := size(d.path("r.json")); left != 0 {
			t.Errorf("half a record of %d bytes is left", left)
		}
	})
}
