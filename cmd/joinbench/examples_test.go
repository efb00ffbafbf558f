package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples: what examples/ says is what happens, byte for byte, and its story is told by the counters.
func TestExamples(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join("..", "..", "examples")
	want, err := os.ReadFile(filepath.Join(dir, "joined.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tasks := range []string{"auto", "1", "3"} {
		t.Setenv("JOINBENCH_STATE_TASKS", tasks)
		o := joinbench("join", "-c", filepath.Join(dir, "join.yaml"), "--a", filepath.Join(dir, "orders.ndjson"), "--b", filepath.Join(dir, "payments.ndjson"),
			"--late", p.path("late"), "--dead", p.path("dead"), "--unmatched", p.path("unmatched"), "--stats", p.path("stats"), "--progress", "none")
		o.want(t, 0)
		if o.out != string(want) {
			t.Errorf("tasks %s: printed\n%s\nwant\n%s", tasks, o.out, want)
		}
	}
	c := p.stats("stats")
	checkSums(t, &c)
	if a, b := c.A, c.B; a.Read != 8 || a.Accepted != 5 || a.NullKey != 1 || a.Malformed != 1 || a.Late != 1 || b.Read != 8 || b.Accepted != 8 {
		t.Errorf("counters %+v", c)
	}
	for file, texts := range map[string][]string{"late": {"ORD-6"}, "dead": {"ORD-4"}, "unmatched": {"refunded", `"key":"9007199254740993"`, "PAY-6", `"topic":"payments","partition":0,"offset":1207`, "ORD-8"}} {
		lines := p.lines(file)
		if len(lines) != len(texts) {
			t.Errorf("%s has %d lines, want %d: %q", file, len(lines), len(texts), lines)
		}
		for _, text := range texts {
			if !strings.Contains(p.read(file), text) {
				t.Errorf("%s lacks %s: %s", file, text, p.read(file))
			}
		}
	}
}

// TestReadmeExample: the README prints what the command does.
func TestReadmeExample(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("..", "..", "examples", "joined.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	command := "bin/joinbench join -c examples/join.yaml --a examples/orders.ndjson --b examples/payments.ndjson\n"
	if !strings.Contains(string(readme), command) {
		t.Errorf("README.md does not show %q", command)
	}
	if block := "```json\n" + string(want) + "```\n"; !strings.Contains(string(readme), block) {
		t.Errorf("README.md does not show what the command prints:\n%s", want)
	}
}
