package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeKafka: the commands of the README's section on Kafka, one after another, do what it says. Only the broker's address is
// another one.
func TestReadmeKafka(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "<!-- kafka -->\n```sh\n")
	section, rest, ok := strings.Cut(section, "```\n<!-- end of kafka -->")
	if !ok {
		t.Fatal("README.md has no commands between <!-- kafka --> and <!-- end of kafka -->")
	}
	p := newPlace(t)
	t.Chdir(p.dir)
	var last outcome
	commands := 0
	for line := range strings.Lines(section) {
		command, _, _ := strings.Cut(line, "#")
		words := strings.Fields(strings.TrimPrefix(command, "bin/joinbench "))
		switch n := len(words); {
		case words[n-1] == "&":
			addr := startBroker(t, words[:n-1])
			t.Setenv("JOINBENCH_KAFKA_BROKERS", addr)
			continue
		case n > 2 && words[n-2] == ">":
			last = joinbench(words[:n-2]...)
			p.write(words[n-1], last.out)
		default:
			last = joinbench(words...)
		}
		last.want(t, 0)
		commands++
	}
	_, says, _ := strings.Cut(rest, "```\n")
	says, _, _ = strings.Cut(says, "\n```")
	if commands != 4 || !strings.HasSuffix(strings.TrimSpace(last.out), says) || says == "" {
		t.Errorf("%d commands; the last printed\n%s\nwhich does not end with %q", commands, last.out, says)
	}
}

// startBroker starts one in a process of its own, at a free port, and gives its address.
func startBroker(t *testing.T, args []string) (addr string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	program := startProgramTo(t, w, append(args, "--listen", "127.0.0.1:0")...)
	_ = w.Close()
	t.Cleanup(func() {
		program.signal(os.Interrupt)
		program.end()
		_ = r.Close()
	})
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("%s said nothing: %v", filepath.Base(os.Args[0]), err)
	}
	fields := strings.Fields(line)
	for _, f := range fields {
		if f = strings.Trim(f, ",;()"); strings.HasPrefix(f, "127.0.0.1:") {
			return f
		}
	}
	t.Fatalf("no address in %q", line)
	return ""
}
