// Command gateproof measures how often `joinbench ab` is wrong: a build against itself many times, and against builds of the
// same tree that are slower on purpose, by a known share of the time that B take, or that make one lookup or one allocation
// more. The files in the tree are not touched: the compiler is given an overlay.
//
// Each comparison is a line of NDJSON, written when it has ended; who starts the program again goes on behind the last line
// of the same build, whatever commits have left it as it was. The table is Markdown on standard output. Run in the root of the module: go run ./internal/gateproof.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aclements/go-moremath/stats"

	"joinbench/compare"
	"joinbench/internal/overlay"
)

var (
	goCommand = flag.String("go", "go", "the go command")
	data      = flag.String("data", "docs/gate-proof.ndjson", "where the comparisons are noted")
	rounds    = flag.Int("rounds", 50, "rounds, each of four comparisons of equal builds and up to one of each other kind")
	budget    = flag.Duration("budget", time.Minute, "of a comparison")
	only      = flag.String("only", "", "kinds whose name contains this")
	tableOnly = flag.Bool("table", false, "only print the table of what there is")
)

// change is a build that is worse on purpose: a text that stands once in core/task.go, and what to put in its place.
type change struct {
	name string
	old  string
	new  string
	// times is in how many of ten rounds it has its turn; above ten it has several in one.
	times int
}

// turns is how many comparisons of the kind there are to be after so many rounds.
func (c *change) turns(rounds int) int { return rounds * c.times / 10 }

const (
	file    = "core/task.go"
	askedAt = "\tt.stats.AskTime += time.Since(start)\n\tt.askCPU.since(began, len(t.hashes))\n\treturn nil\n}\n\n// bookBloom"
)

// spin makes asking slower by a percentage of the CPU time that it took. It stops early by what a look at the clock takes, since the last one
// ends too late.
func spin(percent, times int) change {
	return change{fmt.Sprintf("%d %% slower", percent), askedAt, fmt.Sprintf(`	now, next := threadNow().at, threadNow().at
	for end := now + (now-began.at)*%d/100 - (next - now); threadNow().at < end; {
	}
%s`, percent, askedAt), times}
}

var changes = []change{
	{name: "equal", times: 40},
	spin(3, 2), spin(5, 10), spin(10, 10), spin(20, 2),
	{"a lookup per million", askedAt, "\tif t.stats.Probes>>20 != (t.stats.Probes-uint64(len(t.hashes)))>>20 {\n\t\tt.stats.Lookups++\n\t}\n" + askedAt, 10},
	{"an allocation per batch", askedAt, "\tkept = new([32]byte)\n" + strings.Replace(askedAt, "// bookBloom", "var kept *[32]byte\n\n// bookBloom", 1), 4},
}

// line is a comparison.
type line struct {
	Date    string         `json:"date"`
	Commit  string         `json:"commit"`
	Build   string         `json:"build"` // of the program itself, by its hash
	Host    string         `json:"host_id"`
	CPU     string         `json:"cpu"`
	Kind    string         `json:"kind"`
	Budget  string         `json:"budget"`
	Verdict string         `json:"verdict"`
	Reasons []string       `json:"reasons"`
	Pairs   *compare.Pairs `json:"pairs"`
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gateproof:", err)
		os.Exit(1)
	}
}

func run() error {
	lines, err := read(*data)
	if err != nil || *tableOnly {
		table(lines)
		return err
	}
	commit, err := commitOf()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gateproof-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built := map[string]string{} // before anything runs, so that the tree may change meanwhile
	for i := range changes {
		if c := &changes[i]; i == 0 || strings.Contains(c.name, *only) {
			if built[c.name], err = c.build(dir); err != nil {
				return err
			}
		}
	}
	build, err := hashOf(built[changes[0].name])
	if err != nil {
		return err
	}
	for round := 1; round <= *rounds; round++ {
		for i := range changes {
			c := &changes[i]
			for strings.Contains(c.name, *only) && count(lines, build, c.name) < c.turns(round) {
				l, err := versus(built[changes[0].name], built[c.name], filepath.Join(dir, "ab"))
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				l.Commit, l.Build, l.Kind = commit, build, c.name
				if err := appendLine(*data, l); err != nil {
					return err
				}
				lines = append(lines, *l)
				fmt.Fprintf(os.Stderr, "round %d, %s: %s\n", round, c.name, l.Verdict)
			}
		}
	}
	table(lines)
	return nil
}

func commitOf() (string, error) {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	return strings.TrimSpace(string(out)), err
}

// overlay writes the file with the change in it, and gives the flags for the compiler: none without a change.
func (c *change) overlay(dir string) ([]string, error) {
	if c.old == "" {
		return nil, nil
	}
	text, err := overlay.Plant(file, c.old, c.new)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", c.name, err)
	}
	list, err := overlay.Write(dir, file, text)
	return []string{"-overlay", list}, err
}

// build makes the program with the change in it.
func (c *change) build(dir string) (string, error) {
	bin := filepath.Join(dir, strings.ReplaceAll(strings.ReplaceAll(c.name, " ", "-"), "%", "percent"))
	flags, err := c.overlay(dir)
	if err != nil {
		return "", err
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", bin}, flags...) // the same tree, the same program
	if out, err := exec.Command(*goCommand, append(args, "./cmd/joinbench")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %q: %w\n%s", c.name, err, out)
	}
	return bin, nil
}

// versus is a comparison.
func versus(base, fresh, dir string) (*line, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	cmd := exec.Command(base, "ab", base, fresh, "--budget", budget.String(), "--dir", dir, "-f", "json")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 5) {
		return nil, fmt.Errorf("%w: %s", err, said.String())
	}
	var c compare.Comparison
	if err := json.Unmarshal(out, &c); err != nil {
		return nil, err
	}
	cpu := ""
	if recs, err := filepath.Glob(filepath.Join(dir, "a-*.json")); err == nil && len(recs) > 0 {
		var rec struct{ Environment struct{ CPU string } }
		if text, err := os.ReadFile(recs[0]); err == nil && json.Unmarshal(text, &rec) == nil {
			cpu = rec.Environment.CPU
		}
	}
	return &line{Date: time.Now().UTC().Format(time.RFC3339), Host: c.Base.Host, CPU: cpu, Budget: budget.String(),
		Verdict: c.Verdict, Reasons: why(&c), Pairs: c.Candidates[0].Pairs}, nil
}

// why is by which metrics it was decided: those of the whole, or, as nobody has to act on an improvement, the candidate's own.
func why(c *compare.Comparison) []string {
	if c.Verdict == compare.Improvement {
		return c.Candidates[0].Reasons
	}
	return c.Reasons
}

func read(path string) ([]line, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var out []line
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w (cut off? remove it)", path, len(out)+1, err)
		}
		out = append(out, l)
	}
	return out, in.Err()
}

func hashOf(path string) (string, error) {
	program, err := os.ReadFile(path)
	return fmt.Sprintf("%x", sha256.Sum256(program))[:16], err
}

func count(lines []line, build, kind string) (n int) {
	for i := range lines {
		if l := &lines[i]; l.Build == build && l.Kind == kind && l.Budget == budget.String() {
			n++
		}
	}
	return n
}

func appendLine(path string, l *line) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, err = f.Write(append(text, '\n'))
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// table counts the verdicts of each kind.
func table(lines []line) {
	if len(lines) == 0 {
		return
	}
	last := &lines[len(lines)-1]
	lines = slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.Build != last.Build || l.Budget != last.Budget })
	fmt.Printf("%s to %s, %s, commit %s, budget %s\n\n", lines[0].Date, last.Date, last.CPU, last.Commit, last.Budget)
	fmt.Println("| the build against itself, and | comparisons | regression | pass | improvement | inconclusive | ratio | pairs | time |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, c := range changes {
		n, verdicts := 0, map[string]int{}
		var ratios, pairs, took []float64
		for i := range lines {
			l := &lines[i]
			if l.Kind != c.name {
				continue
			}
			n++
			verdicts[l.Verdict]++
			if p := l.Pairs; p != nil {
				pairs, took = append(pairs, float64(len(p.Logs))), append(took, float64(p.TookNs)/1e9)
				if p.Ratio != nil {
					ratios = append(ratios, 100*(*p.Ratio-1))
				}
			}
		}
		if n > 0 {
			fmt.Printf("| %s | %d | %d | %d | %d | %d | %s | %s | %s |\n", c.name, n, verdicts[compare.Regression], verdicts[compare.Pass],
				verdicts[compare.Improvement], verdicts[compare.Inconclusive], middle(ratios, "%+.1f %%"), middle(pairs, "%.0f"), middle(took, "%.0f s"))
		}
	}
}

// middle is the median of the values, and between which nine of ten lie.
func middle(values []float64, format string) string {
	if len(values) == 0 {
		return "–"
	}
	s := stats.Sample{Xs: values}
	of := func(q float64) string { return fmt.Sprintf(format, s.Quantile(q)) }
	return fmt.Sprintf("%s (%s to %s)", of(0.5), of(0.05), of(0.95))
}
