package main

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"joinbench/internal/kafkatest"
)

// TestBroker: the program says where it is and what to do next, keeps what it was given, and SIGTERM and ^C end it with 0.
func TestBroker(t *testing.T) {
	dir := t.TempDir()
	for i, s := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		cmd := exec.Command(os.Args[0], "broker", "--data", dir, "--listen", "127.0.0.1:0", "--topic", "orders=2", "--topic", "payments", "--partitions", "3")
		cmd.Env = append(os.Environ(), asProgram+"=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill() }()
		addr, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err, stderr.String())
		}
		b := kafkatest.At(t, strings.TrimSpace(addr))
		if n := len(b.Ends(t, "orders")); n != 2 {
			t.Errorf("orders has %d partitions, want 2", n)
		}
		b.Produce(t, &kgo.Record{Topic: "payments", Partition: 2, Value: []byte("x")})
		if got := b.Ends(t, "payments"); len(got) != 3 || got[2] != int64(i+1) {
			t.Errorf("payments ends at %v in life %d", got, i)
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v\n%s", s, err, stderr.String())
		}
		for _, text := range []string{strings.TrimSpace(addr), "kept in " + dir, "orders (2), payments (3)", "joinbench serve -c"} {
			if !strings.Contains(stderr.String(), text) {
				t.Errorf("%q is not in what it says:\n%s", text, stderr.String())
			}
		}
	}
}

// TestBrokerFaults: each fault has its code and says what to do.
func TestBrokerFaults(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	joinbench("broker", "--listen", l.Addr().String()).want(t, 1, "in use", "--listen")
	joinbench("broker", "--topic", "a=0").want(t, 2, "--topic a=0", "1 or more")
	joinbench("broker", "--topic", "=3").want(t, 2, "--topic =3", "name")
	joinbench("broker", "--partitions", "0").want(t, 2, "--partitions 0")
	joinbench("broker", "more").want(t, 2, `"more"`)
	if o := joinbench("broker", "-h"); o.code != 0 || !strings.Contains(o.out, "kill -9") || !strings.Contains(o.out, "scripts/kafka.sh") {
		t.Errorf("-h: %d\n%s", o.code, o.out)
	}
}
