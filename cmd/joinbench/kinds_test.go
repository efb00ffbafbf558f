package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var updateExamples = flag.Bool("update", false, "write what join prints into examples/joins and into README.md")

// joinKinds are the folders of examples/joins, in the order of the README.
var joinKinds = []string{"inner", "left", "right", "outer", "one-to-many", "many-to-many", "wait", "immediate", "early", "retract", "complete-on",
	"collect-count", "collect-marker", "collect-timeout", "unmatched", "late-dead"}

const joinsDir = "../../examples/joins"

// TestExamplesOfEachKind: each kind of join has an example, join prints what the example says, in its main and its side outputs,
// for any number of tasks and size of batch; and the README shows exactly these files. -update writes them.
func TestExamplesOfEachKind(t *testing.T) {
	dirs, err := os.ReadDir(joinsDir)
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) != len(joinKinds) {
		t.Errorf("%d folders in examples/joins, %d kinds in this test", len(dirs), len(joinKinds))
	}
	for _, kind := range joinKinds {
		t.Run(kind, func(t *testing.T) { runKind(t, kind) })
	}
	if t.Failed() {
		return
	}
	const path, begin, end = "../../README.md", "<!-- examples/joins -->\n", "<!-- end of examples/joins -->\n"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, has := strings.Cut(string(data), begin)
	shown, after, ends := strings.Cut(rest, end)
	if !has || !ends {
		t.Fatalf("README.md lacks the marks %q and %q", begin, end)
	}
	want := kindsForReadme(t)
	if *updateExamples {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if shown != want {
		t.Error("README.md does not show what examples/joins has: go test ./cmd/joinbench -run TestExamples -update")
	}
}

// runKind joins one example and compares, or writes, what comes out.
func runKind(t *testing.T, kind string) {
	dir := filepath.Join(joinsDir, kind)
	conf := exampleFile(t, kind, "join.yaml")
	if n := strings.Count(conf, "\n"); n > 10 {
		t.Errorf("join.yaml has %d lines", n)
	}
	for _, way := range [][2]string{{"1", "4096"}, {"2", "4096"}, {"1", "1"}} {
		p := newPlace(t)
		t.Setenv("JOINBENCH_STATE_TASKS", way[0])
		args := []string{"join", "-c", filepath.Join(dir, "join.yaml"), "--a", filepath.Join(dir, "a.ndjson"), "--b", filepath.Join(dir, "b.ndjson"),
			"--batch", way[1], "--progress", "none", "--out", p.path("expected.ndjson")}
		names := []string{"expected.ndjson"}
		for _, side := range []string{"late", "dead", "unmatched"} {
			if name := "expected-" + side + ".ndjson"; exists(filepath.Join(dir, name)) {
				args, names = append(args, "--"+side, p.path(name)), append(names, name)
			}
		}
		joinbench(args...).want(t, 0)
		for _, name := range names {
			if got := p.read(name); *updateExamples && way == [2]string{"1", "4096"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else {
				wantLines(t, strings.Split(got, "\n"), strings.Split(exampleFile(t, kind, name), "\n")...)
			}
		}
	}
	if exampleFile(t, kind, "expected.ndjson") == "" {
		t.Error("an example without results shows nothing")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func exampleFile(t *testing.T, kind, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(joinsDir, kind, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// kindsForReadme makes the section of the README: what is behind each summary is folded.
func kindsForReadme(t *testing.T) string {
	t.Helper()
	var s strings.Builder
	for _, kind := range joinKinds {
		fmt.Fprintf(&s, "<details><summary><b>%s</b>: %s</summary>\n\n```yaml\n%s```\n```sh\n", kind,
			codeTags(strings.TrimSpace(exampleFile(t, kind, "README-snippet.md"))), exampleFile(t, kind, "join.yaml"))
		for _, file := range []struct{ title, name string }{{"a.ndjson", "a.ndjson"}, {"b.ndjson", "b.ndjson"}, {"join prints", "expected.ndjson"},
			{"--late", "expected-late.ndjson"}, {"--dead", "expected-dead.ndjson"}, {"--unmatched", "expected-unmatched.ndjson"}} {
			if exists(filepath.Join(joinsDir, kind, file.name)) {
				fmt.Fprintf(&s, "# %s\n%s", file.title, exampleFile(t, kind, file.name))
			}
		}
		s.WriteString("```\n</details>\n\n")
	}
	return s.String()
}

// codeTags writes `x` as HTML, since a summary is no Markdown.
func codeTags(text string) string {
	parts := strings.Split(text, "`")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = "<code>" + parts[i] + "</code>"
	}
	return strings.Join(parts, "")
}
