package kafkatest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"joinbench/broker"
)

// asBroker in the environment makes a test's binary a broker: its value is the address to listen on, its only argument the data
// directory. So each package's tests have a broker process without building another program.
const asBroker = "JOINBENCH_TEST_AS_BROKER"

func init() {
	if listen := os.Getenv(asBroker); listen != "" {
		if err := serve(listen, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "broker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// serve runs a broker until standard input ends, which it also does when the test is gone, however that ended.
func serve(listen, data string) error {
	b, err := broker.Open(broker.Options{Listen: listen, Data: data, Partitions: 1, Log: os.Stderr})
	if err != nil {
		return err
	}
	fmt.Println(b.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return b.Close()
}

// process is a broker in a process of its own.
type process struct {
	addr, data string
	cmd        *exec.Cmd
	stdin      io.Closer
}

func startProcess(t testing.TB) *process {
	t.Helper()
	p := &process{addr: "127.0.0.1:0", data: t.TempDir()}
	p.start(t)
	t.Cleanup(func() {
		if p.cmd != nil {
			_ = p.cmd.Process.Signal(syscall.SIGCONT)
			p.stop(t)
		}
	})
	return p
}

// start starts it where it was before, and waits until it listens.
func (p *process) start(t testing.TB) {
	t.Helper()
	cmd := exec.Command(os.Args[0], p.data)
	cmd.Env = append(os.Environ(), asBroker+"="+p.addr)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.cmd, p.stdin = cmd, in
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the broker's process did not start: %v, %v", err, cmd.Wait())
	}
	p.addr = strings.TrimSpace(line)
}

// stop ends it as SIGTERM ends `joinbench broker`, and waits.
func (p *process) stop(t testing.TB) {
	t.Helper()
	_ = p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the broker's process: %v", err)
	}
	p.cmd = nil
}

func (b *Broker) own(t testing.TB) *process {
	t.Helper()
	if b.process == nil || b.process.cmd == nil {
		t.Fatal("this broker has no process of its own that runs (kafkatest.Process)")
	}
	return b.process
}

// Kill ends the broker's process with SIGKILL; Restart starts it again.
func (b *Broker) Kill(t testing.TB) {
	t.Helper()
	if b.apache != nil {
		b.apache.kill(t)
		return
	}
	p := b.own(t)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // says that it was killed
	_ = p.stdin.Close()
	p.cmd = nil
}

// Stop ends the broker's process cleanly; Restart starts it again.
func (b *Broker) Stop(t testing.TB) {
	t.Helper()
	if b.apache != nil {
		b.apache.run(t, "stop")
		return
	}
	b.own(t).stop(t)
}

// Restart starts a broker that was killed or stopped, on the same port with the same data.
func (b *Broker) Restart(t testing.TB) {
	t.Helper()
	if b.apache != nil {
		b.apache.run(t, "start")
		return
	}
	if b.process == nil || b.process.cmd != nil {
		t.Fatal("Restart is for a broker with a process of its own that has ended")
	}
	b.process.start(t)
}

// Freeze stops the broker's process from running (SIGSTOP) until Thaw: connections stay open, and nothing answers.
func (b *Broker) Freeze(t testing.TB) {
	t.Helper()
	b.signal(t, syscall.SIGSTOP)
	// The signal is on its way; its parent is told when it has arrived.
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(b.process.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the broker's process does not stop: %v, status %x", err, status)
	}
}

// Thaw lets it run again.
func (b *Broker) Thaw(t testing.TB) { b.signal(t, syscall.SIGCONT) }

func (b *Broker) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := b.own(t).cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
