package kafkatest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Apache asks for an Apache Kafka of the test's own, with data that outlive it: scripts/kafka.sh starts it, which takes some seconds.
func Apache() Option { return func(c *choice) { c.apache = true } }

// apache is an Apache Kafka that scripts/kafka.sh runs.
type apache struct{ script, dir string }

func startApache(t testing.TB) (*apache, []string) {
	t.Helper()
	a := &apache{script: script(t), dir: t.TempDir()}
	addrs := a.run(t, "start", "--port", "free")
	t.Cleanup(func() { a.run(t, "stop") })
	return a, strings.Split(addrs, ",")
}

// script finds scripts/kafka.sh from the directory of any package.
func script(t testing.TB) string {
	t.Helper()
	for dir := "."; ; dir = filepath.Join("..", dir) {
		path := filepath.Join(dir, "scripts", "kafka.sh")
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if abs, err := filepath.Abs(dir); err != nil || abs == "/" {
			t.Fatal("scripts/kafka.sh is not above this package")
		}
	}
}

func (a *apache) run(t testing.TB, command string, args ...string) string {
	t.Helper()
	cmd := exec.Command(a.script, append([]string{command, "--dir", a.dir}, args...)...)
	cmd.Env = append(os.Environ(), "KAFKA_HEAP=512m")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kafka.sh %s: %v: %s", command, err, said.String())
	}
	return strings.TrimSpace(string(out))
}

func (a *apache) kill(t testing.TB) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.dir, "broker-1", "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // it is no child of this process
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, of, ok := bytes.Cut(state, []byte(") ")); err != nil || ok && of[0] == 'Z' {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the broker does not die")
		}
	}
}
