// Command mutants plants one bug at a time and demands that the metamorphic test of package pipeline finds it. The files
// in the tree are not touched: the compiler is given an overlay.
//
// A bug is an exact replacement (list.go). When its text is not there any more, or there more than once, that is an error:
// the list must follow the code. Run in the root of the module: go run ./internal/mutants.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"joinbench/internal/overlay"
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
	if out, err := test(dir, *sound); err != nil {
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
	text, err := overlay.Plant(m.file, m.old, m.new)
	if err != nil {
		return "", fmt.Errorf("%q: %w", m.name, err)
	}
	return text, nil
}

// afterCases is how the metamorphic test begins the report of a case that fails.
var afterCases = regexp.MustCompile(`(?s)(\d+) cases passed, then: (.{0,160})`)

// hunt plants the bug and says how it was found.
func (m *mutant) hunt(dir string) (string, error) {
	text, err := m.text()
	if err != nil {
		return "", err
	}
	list, err := overlay.Write(dir, m.file, text)
	if err != nil {
		return "", err
	}
	out, err := test(dir, *cases, "-overlay", list)
	if err == nil {
		return "", fmt.Errorf("%d cases pass", *cases)
	}
	how := afterCases.FindStringSubmatch(out)
	if how == nil {
		return "", fmt.Errorf("the test did not run: %w\n%s", err, out)
	}
	return fmt.Sprintf("%s cases passed, then %s …", how[1], strings.Join(strings.Fields(how[2]), " ")), nil
}

// test builds the tests of pipeline and runs the metamorphic one.
func test(dir string, n int, flags ...string) (string, error) {
	binary := filepath.Join(dir, "pipeline.test")
	build := exec.Command(*goCommand, append(append([]string{"test", "-c", "-o", binary}, flags...), "./pipeline")...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the bug does not compile: %w\n%s", err, out)
	}
	run := exec.Command(binary, "-test.run=^TestMetamorphic$", "-test.timeout=60m", "-meta.shrink=0", fmt.Sprintf("-meta.n=%d", n),
		fmt.Sprintf("-meta.seed=%d", *seed))
	run.Dir = "pipeline"
	out, err := run.CombinedOutput()
	return string(out), err
}
