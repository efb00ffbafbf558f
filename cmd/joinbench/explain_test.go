package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExplain: the command on the example of the README, as text and as JSON.
func TestExplain(t *testing.T) {
	dir := filepath.Join("..", "..", "examples")
	args := []string{"explain", "-c", filepath.Join(dir, "join.yaml"), "--a", filepath.Join(dir, "orders.ndjson"), "--b", filepath.Join(dir, "payments.ndjson"), "--key"}
	o := joinbench(append(args, "PAY-6")...)
	o.want(t, 0)
	for _, text := range []string{"key \"PAY-6\": 1 of A, 1 of B", "a orders/0@5: late: joins nothing", "line 6", "(rule 8)", "b payments/0@1205: no partner", "why       a orders/0@5: late"} {
		if !strings.Contains(o.out, text) {
			t.Errorf("lacks %q:\n%s", text, o.out)
		}
	}
	// Each result of its join is explained by its key.
	data, err := os.ReadFile(filepath.Join(dir, "joined.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var r struct{ Key json.RawMessage }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		typ := "number"
		if r.Key[0] == '"' {
			typ = "string"
		}
		o := joinbench(append(args, strings.Trim(string(r.Key), `"`), "--key-type", typ, "--json")...)
		o.want(t, 0)
		if !strings.Contains(o.out, strings.TrimSpace(line)) {
			t.Errorf("key %s: no step has the line %s: %s", r.Key, line, o.out)
		}
		for _, step := range o.lines(t) {
			if !json.Valid([]byte(step)) {
				t.Errorf("no JSON: %s", step)
			}
		}
	}
	o = joinbench(append(args, "PAY-0")...)
	o.want(t, 1, `no record of `, `has the key "PAY-0" (nearest: "PAY-1", "PAY-2", "PAY-6")`)
	if o.out != "" || strings.Count(o.err, "\n") != 1 {
		t.Errorf("stdout %q, stderr %q", o.out, o.err)
	}
	joinbench(append(args, "9007199254740993")...).want(t, 0) // the string of that text is the key of a B
	joinbench(append(args, "zzzzzzzzzzzzzzz")...).want(t, 1, "nor one like it")
	joinbench(args[:len(args)-1]...).want(t, 2, "--key is missing")
	joinbench(append(args, "x", "--key-type", "int")...).want(t, 2, `--key-type "int"`)
	joinbench("explain", "-c", args[2], "--a", "x", "--key", "k").want(t, 2, "--b is missing")
	joinbench("explain", "-c", args[2], "--a", filepath.Join(dir, "none"), "--b", args[6], "--key", "k").want(t, 1, "does not exist")
	o = joinbench("explain", "-h")
	o.want(t, 0)
	if !strings.Contains(o.out, "joinbench explain -c join.yaml --a orders.ndjson") {
		t.Errorf("help: %s", o.out)
	}
}
