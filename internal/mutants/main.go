// Command mutants plants one bug at a time and demands that the metamorphic test of package pipeline finds it. The files
// in the tree are not touched: the compiler is given an overlay.
//
// A bug is an exact replacement (list.go). When its text is not there any more, or there more than once, that is an error:
// the list must follow the code. Run in the root of the module: go run ./internal/mutants.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

var (
	goCommand = flag.String("go", "go", "the go command")
	cases     = flag.Int("n", 2000, "cases of the metamorphic test a bug may live through at most")
	sound     = flag.Int("sound", 200, "cases that must pass without any bug")
	seed      = flag.Uint64("seed", 1, "first seed")
	only      = flag.String("only", "", "bugs whose name contains this")
	list      = flag.Bool("list", false, "only see whether every bug can be planted")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var faults []error
	for i := range mutants { // before anything is built
		if _, err := mutants[i].text(); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 || *list {
		return errors.Join(faults...)
	}
	if out, err := test(dir, nil, *sound); err != nil {
		return fmt.Errorf("the test fails without any bug: %w\n%s", err, out)
	}
	fmt.Printf("no bug: %d cases pass\n", *sound)
	found, planted := 0, 0
	for i := range mutants {
		m := &mutants[i]
		if !strings.Contains(m.name, *only) {
			continue
		}
		planted++
		start := time.Now()
		how, err := m.hunt(dir)
		if err != nil {
			fmt.Printf("SURVIVED %s: %v\n", m.name, err)
			continue
		}
		found++
		fmt.Printf("found in %.0f s, %s: %s\n", time.Since(start).Seconds(), m.name, how)
	}
	fmt.Printf("%d of %d bugs found\n", found, planted)
	if found < planted || planted == 0 {
		return fmt.Errorf("%d of %d bugs were not found", planted-found, planted)
	}
	return nil
}

// text is the file with the bug in it.
func (m *mutant) text() (string, error) {
	data, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(data), m.old); n != 1 {
		return "", fmt.Errorf("%q: its text is %d times in %s, want once: %q", m.name, n, m.file, m.old)
	}
	return strings.Replace(string(data), m.old, m.new, 1), nil
}

// afterCases is how the metamorphic test begins the report of a case that fails.
var afterCases = regexp.MustCompile(`(?s)(\d+) cases passed, then: (.{0,160})`)

// hunt plants the bug and says how it was found.
func (m *mutant) hunt(dir string) (string, error) {
	text, err := m.text()
	if err != nil {
		return "", err
	}
	out, err := test(dir, map[string]string{m.file: text}, *cases)
	if err == nil {
		return "", fmt.Errorf("%d cases pass", *cases)
	}
	how := afterCases.FindStringSubmatch(out)
	if how == nil {
		return "", fmt.Errorf("the test did not run: %w\n%s", err, out)
	}
	return fmt.Sprintf("%s cases passed, then %s …", how[1], strings.Join(strings.Fields(how[2]), " ")), nil
}

// test builds the tests of pipeline with some files replaced, and runs the metamorphic one.
func test(dir string, files map[string]string, n int) (string, error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range files {
		path, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		overlay.Replace[path] = filepath.Join(dir, "planted.go")
		if err := os.WriteFile(overlay.Replace[path], []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	overlayFile, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "pipeline.test")
	if err := os.WriteFile(overlayFile, data, 0o644); err != nil {
		return "", err
	}
	build := exec.Command(*goCommand, "test", "-c", "-overlay", overlayFile, "-o", binary, "./pipeline")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the bug does not compile: %w\n%s", err, out)
	}
	run := exec.Command(binary, "-test.run=^TestMetamorphic$", "-test.timeout=60m", "-meta.shrink=0", fmt.Sprintf("-meta.n=%d", n),
		fmt.Sprintf("-meta.seed=%d", *seed))
	run.Dir = "pipeline"
	out, err := run.CombinedOutput()
	return string(out), err
}
