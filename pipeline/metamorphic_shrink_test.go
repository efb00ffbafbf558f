package pipeline

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"joinbench/config"
	"joinbench/internal/oracle"
)

// plainer are the steps by which a case becomes easier to read, first those that say most about the fault: does it need a
// stop, other goroutines, a weak hash? Each makes one change; false if there is none left to make.
var plainer = []struct {
	name string
	step func(*metaCase) bool
}{
	{"drained", func(c *metaCase) bool { return set(&c.Oracle.NoDrain, false) }},
	{"no limit", func(c *metaCase) bool { return set(&c.MaxPending, 0) }},
	{"no tombstones", func(c *metaCase) bool { return set(&c.Oracle.Retract, false) }},
	{"no early rows", func(c *metaCase) bool { c.Oracle.Retract = false; return set(&c.Oracle.Early, 0) }},
	{"eager", func(c *metaCase) bool { return set(&c.Oracle.Collect, oracle.Collect{}) }},
	{"no end but the close", func(c *metaCase) bool { return set(&c.Oracle.CompleteOn, oracle.CompleteOn{}) }},
	{"aligned", func(c *metaCase) bool { return set(&c.Oracle.Probe, oracle.Aligned) }},
	{"inner", func(c *metaCase) bool { return set(&c.Oracle.Type, oracle.Inner) }},
	{"outer as left", func(c *metaCase) bool { return c.Oracle.Type == oracle.Outer && set(&c.Oracle.Type, oracle.Left) }},
	{"outer as right", func(c *metaCase) bool { return c.Oracle.Type == oracle.Outer && set(&c.Oracle.Type, oracle.Right) }},
	{"one to one", func(c *metaCase) bool { return set(&c.Oracle.Cardinality, oracle.OneToOne) }},
	{"one to many", func(c *metaCase) bool {
		return c.Oracle.Cardinality == oracle.ManyToMany && set(&c.Oracle.Cardinality, oracle.OneToMany)
	}},
	{"join key", func(c *metaCase) bool { return set(&c.Oracle.OutputKey, oracle.JoinKey) }},
	{"last life alone", func(c *metaCase) bool { return dropLives(c, 0, c.stops()) }},
	{"first life alone, to its end", func(c *metaCase) bool { c.Lives[0].Stop = metaStop{}; return dropLives(c, 1, len(c.Lives)) }},
	{"first stop alone", func(c *metaCase) bool { return dropLives(c, 1, c.stops()) }},
	{"without the first stop", func(c *metaCase) bool { return dropLives(c, 0, min(1, c.stops())) }},
	{"outputs in one", eachLife(func(l *metaLife) bool { return set(&l.Output, 0) })},
	{"arrives evenly", eachLife(func(l *metaLife) bool { return set(&l.Fetch, fetchEvenly) })},
	{"arrives one by one", eachLife(func(l *metaLife) bool { return set(&l.Chunk, 1) })},
	{"inline", eachLife(func(l *metaLife) bool { return set(&l.Inline, true) })},
	{"one task", func(c *metaCase) bool { return set(&c.Tasks, 1) }},
	{"no filter", eachLife(func(l *metaLife) bool { return set(&l.Filter, "none") })},
	{"no summary", eachLife(func(l *metaLife) bool { return set(&l.Summary, false) })},
	{"normal hash", func(c *metaCase) bool { return set(&c.Hash, "normal") }},
	{"no failing builds", eachLife(func(l *metaLife) bool { return set(&l.Build, "never") })},
	{"no limit of arenas", eachLife(func(l *metaLife) bool { return set(&l.Arena, 0) })},
	{"no sync", eachLife(func(l *metaLife) bool { return set(&l.Sync, "none") })},
	{"no late output", func(c *metaCase) bool { return set(&c.Late, false) }},
	{"no dead output", func(c *metaCase) bool { return set(&c.Dead, false) }},
	{"no unmatched output", func(c *metaCase) bool { return set(&c.Unmatched, false) }},
	{"A projected", func(c *metaCase) bool { return set(&c.Oracle.A.StoreFull, false) }},
	{"B projected", func(c *metaCase) bool { return set(&c.Oracle.B.StoreFull, false) }},
	{"batches of 1000", eachLife(func(l *metaLife) bool { return set(&l.Batch, 1000) })},
	{"batches of 1", eachLife(func(l *metaLife) bool { return l.Batch < 1000 && set(&l.Batch, 1) })},
	{"width auto", func(c *metaCase) bool { return set(&c.Width, 0) }},
	{"two buckets", func(c *metaCase) bool { return set(&c.Buckets, 2) }},
	{"four buckets", func(c *metaCase) bool { return c.Buckets > 2 && set(&c.Buckets, 4) }},
	{"no window before", func(c *metaCase) bool { return set(&c.Oracle.Before, 0) }},
	{"no window after", func(c *metaCase) bool { return set(&c.Oracle.After, 0) }},
	{"no grace", func(c *metaCase) bool { return set(&c.Oracle.Grace, 0) }},
	{"max_spread auto", func(c *metaCase) bool { return set(&c.Spread, 0) }},
	{"least max_spread", func(c *metaCase) bool {
		return c.Spread != 0 && set(&c.Spread, c.Oracle.Before+c.Oracle.Grace+time.Millisecond)
	}},
	{"stopped instead of killed", eachLife(func(l *metaLife) bool { return l.Stop.Kind == stopKill && set(&l.Stop.Kind, stopError) })},
	{"earlier stop", eachLife(func(l *metaLife) bool { return l.Stop.Hit > 1 && set(&l.Stop.Hit, l.Stop.Hit-1) })},
	{"first hit", eachLife(func(l *metaLife) bool { return l.Stop.Hit > 0 && set(&l.Stop.Hit, 1) })},
}

func set[T comparable](v *T, to T) bool {
	changed := *v != to
	*v = to
	return changed
}

func eachLife(step func(*metaLife) bool) func(*metaCase) bool {
	return func(c *metaCase) (changed bool) {
		for i := range c.Lives {
			changed = step(&c.Lives[i]) || changed
		}
		return changed
	}
}

// dropLives removes the lives from..to-1. The last one that is left must go to the end.
func dropLives(c *metaCase, from, to int) bool {
	if from >= to {
		return false
	}
	c.Lives = slices.Delete(c.Lives, from, to)
	return true
}

// shrink looks for the plainest case with the fewest lines that still fails, as long as there is time.
func shrink(in metaInput, fails func(*metaInput) bool, timeUp func() bool) metaInput {
	for changed := true; changed && !timeUp(); {
		changed = false
		for _, p := range plainer {
			for {
				next := in
				next.Case.Lives = slices.Clone(in.Case.Lives)
				if timeUp() || !p.step(&next.Case) || !fails(&next) {
					break
				}
				in, changed = next, true
			}
		}
		for _, file := range []func(*metaInput) *[]byte{func(i *metaInput) *[]byte { return &i.B }, func(i *metaInput) *[]byte { return &i.A }} {
			lines := splitLines(*file(&in))
			fewer := shrinkLines(lines, func(some [][]byte) bool {
				next := in
				*file(&next) = bytes.Join(some, nil)
				return fails(&next)
			}, timeUp)
			changed = changed || len(fewer) < len(lines)
			*file(&in) = bytes.Join(fewer, nil)
		}
	}
	return in
}

// splitLines keeps the newlines.
func splitLines(file []byte) [][]byte {
	lines := bytes.SplitAfter(file, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1] // or each round would find it, and take it out
	}
	return lines
}

// shrinkLines takes out ever smaller stretches, down to single lines, as long as what is left fails.
func shrinkLines(lines [][]byte, fails func([][]byte) bool, timeUp func() bool) [][]byte {
	for size := len(lines); size > 0; size /= 2 {
		for from := 0; from < len(lines) && !timeUp(); {
			some := slices.Concat(lines[:from], lines[min(len(lines), from+size):])
			if fails(some) {
				lines = some
			} else {
				from += size
			}
		}
	}
	return lines
}

// TestShrink: of a fault that needs a few records and settings among many the shrinker leaves these and no others.
func TestShrink(t *testing.T) {
	shrunk := 0
	defer func() {
		if shrunk < 10 {
			t.Errorf("only %d inputs had what the test needs", shrunk)
		}
	}()
	for seed := uint64(1); seed <= 25; seed++ {
		in := drawInput(seed)
		in.Case.Tasks, in.Case.Lives[0].Filter, in.Case.Hash = 3, "fuse16", "constant"
		aLines, bLines := splitLines(in.A), splitLines(in.B)
		a1, a2, b1 := aLines[0], aLines[len(aLines)/2], bLines[len(bLines)/3]
		if bytes.Count(in.A, a1) != 1 || bytes.Count(in.A, a2) != 1 || bytes.Count(in.B, b1) != 1 || len(a1) < 2 {
			continue // read twice, so that one of them is enough
		}
		shrunk++
		asked := 0
		fails := func(in *metaInput) bool {
			asked++
			return in.Case.Tasks > 1 && in.Case.Lives[0].Filter == "fuse16" && bytes.Contains(in.A, a1) && bytes.Contains(in.A, a2) && bytes.Contains(in.B, b1)
		}
		if !fails(&in) {
			t.Fatalf("seed %d: the input itself does not fail", seed)
		}
		got := shrink(in, fails, func() bool { return false })
		if !fails(&got) {
			t.Fatalf("seed %d: what is left does not fail", seed)
		}
		if want := append(slices.Clone(a1), a2...); !bytes.Equal(got.A, want) || !bytes.Equal(got.B, b1) {
			t.Errorf("seed %d: a %q\n  want %q\nb %q\n  want %q", seed, got.A, want, got.B, b1)
		}
		c := &got.Case
		if l := c.Lives[0]; len(c.Lives) != 1 || c.Tasks != 3 || l.Filter != "fuse16" || c.Hash != "normal" || !l.Inline || l.Summary || l.Batch != 1000 ||
			c.Buckets != 2 || c.Late || c.Dead || c.Unmatched || c.Oracle.After != 0 || c.Width != 0 {
			t.Errorf("seed %d: not the plainest case:\n%s", seed, c)
		}
		if asked > 2000 {
			t.Errorf("seed %d: asked %d times", seed, asked)
		}
		if c.Seed != seed || in.Case.Hash != "constant" || in.Case.Tasks != 3 {
			t.Errorf("seed %d: the input itself was changed", seed)
		}
	}
}

// TestShrinkEndsInTime: when the time is up the best so far is the answer.
func TestShrinkEndsInTime(t *testing.T) {
	in := drawInput(3)
	for most := range 40 {
		asked := 0
		got := shrink(in, func(in *metaInput) bool { asked++; return len(in.A) > 0 }, func() bool { return asked >= most })
		if asked > most || len(got.A) == 0 {
			t.Fatalf("asked %d times of %d, %d bytes of A left", asked, most, len(got.A))
		}
	}
}

// TestCasesOfASeed: a case is the same whenever it is drawn, survives being written down, and is one that can be run.
func TestCasesOfASeed(t *testing.T) {
	for seed := uint64(1); seed <= 25; seed++ {
		in, again := drawInput(seed), drawInput(seed)
		text := fmt.Sprintf("%+v", in.Case)
		if text != fmt.Sprintf("%+v", again.Case) || !bytes.Equal(in.A, again.A) || !bytes.Equal(in.B, again.B) {
			t.Fatalf("seed %d: drawn twice, two cases", seed)
		}
		dir := t.TempDir()
		if err := in.save(dir); err != nil {
			t.Fatal(err)
		}
		back, err := loadInput(dir)
		if err != nil || text != fmt.Sprintf("%+v", back.Case) || !bytes.Equal(in.A, back.A) || !bytes.Equal(in.B, back.B) {
			t.Fatalf("seed %d: written and read, another case: %v", seed, err)
		}
		want, err := in.Case.config(&in.Case.Lives[0])
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		conf, err := config.Parse(readFile(t, filepath.Join(dir, "join.yaml")), "join.yaml")
		if err == nil {
			err = conf.Validate()
		}
		if err != nil || texts(conf) != texts(want) {
			t.Errorf("seed %d: join.yaml: %v\n%s\nwant\n%s", seed, err, texts(conf), texts(want))
		}
		for i := range in.Case.Lives {
			if _, err := in.Case.config(&in.Case.Lives[i]); err != nil {
				t.Errorf("seed %d: %v\n%s", seed, err, &in.Case)
			}
		}
		if _, err := oracle.Expect(in.Case.Oracle, in.A, in.B, in.Case.Format); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// texts are the values of a configuration, wherever they come from.
func texts(j *config.Join) string {
	var s strings.Builder
	for _, v := range j.Values() {
		fmt.Fprintf(&s, "%s=%s\n", v.Key, v.Text)
	}
	return s.String()
}
