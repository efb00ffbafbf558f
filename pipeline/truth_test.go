package pipeline

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"joinbench/loadgen"
)

// TestPairsOfAnyLength: the files of pairs stay small however many come, and a sink that is restored from any commit, with
// whatever the lost life had written behind it, judges the run as a whole.
func TestPairsOfAnyLength(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	g, err := loadgen.New(loadgen.Config{Seed: 3, Pending: 20_000, BEvents: 100_000, MatchRate: 0.2, Grace: time.Second,
		Disorder: 100 * time.Millisecond, After: time.Hour, PartitionsA: 2, PartitionsB: 2})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	open := func(state []byte) *truthSink {
		s := newTruthSink(g, dir)
		s.roll = 100 * pairBytes
		if err := s.Restore(state); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		return s
	}
	const spuriousEvery = 5000
	expected, wrong := g.ExpectedMatches(), int64(0)
	s, next := open(nil), int64(0)
	var state []byte // of the last commit
	var committed struct{ next, wrong int64 }
	lives, most := 1, 0
	for next < g.BCount() {
		for range 1 + rnd.IntN(300) {
			if next == g.BCount() {
				break
			}
			i, ok := g.Expected(next)
			if !ok && next%spuriousEvery == 1 {
				i, ok = 0, true
				wrong++
			}
			if ok {
				if err := s.pair(next, i); err != nil {
					t.Fatal(err)
				}
			}
			next++
		}
		now, err := s.State(nil)
		if err != nil {
			t.Fatal(err)
		}
		if rnd.IntN(20) == 0 { // killed before this commit
			_ = s.close()
			s, next, wrong, lives = open(state), committed.next, committed.wrong, lives+1
			continue
		}
		state, committed.next, committed.wrong = now, next, wrong
		files, total := pairsFiles(t, dir)
		most = max(most, total)
		if files > 2 {
			t.Fatalf("seed %d: %d files of pairs", seed, files)
		}
	}
	_ = s.close()
	s = open(state)
	defer s.close()
	if files, _ := pairsFiles(t, dir); files != 1 {
		t.Errorf("%d files are left", files)
	}
	v := s.verifier.Result()
	if v.Matches != expected || v.Missing != 0 || v.Duplicated != 0 || v.Spurious != wrong || wrong == 0 || s.outputs != uint64(expected+wrong) {
		t.Errorf("seed %d, %d lives: %+v, %d outputs; want %d and %d spurious", seed, lives, v, s.outputs, expected, wrong)
	}
	if all := int(expected) * pairBytes; lives < 5 || s.number < 20 || most > all/4 {
		t.Errorf("seed %d: %d lives, file %d, %d bytes at most, all pairs are %d: nothing was tested", seed, lives, s.number, most, all)
	}
}

// pairsFiles counts the files of pairs and their bytes.
func pairsFiles(t *testing.T, dir string) (files, total int) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if strings.HasPrefix(f.Name(), pairsFile) {
			info, err := f.Info()
			if err != nil {
				t.Fatal(err)
			}
			files, total = files+1, total+int(info.Size())
		}
	}
	return files, total
}

// TestPairsThatWereChanged: a file that is shorter than its commit, or is no such file, is refused.
func TestPairsThatWereChanged(t *testing.T) {
	g, err := loadgen.New(loadgen.Config{Pending: 1000, BEvents: 1000, MatchRate: 0.5, After: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := newTruthSink(g, dir)
	s.roll = pairBytes
	if err := s.Restore(nil); err != nil {
		t.Fatal(err)
	}
	var state []byte
	for j := range int64(4) {
		if err := s.pair(j, j); err != nil {
			t.Fatal(err)
		}
		if state, err = s.State(nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(); err != nil || s.number == 0 {
		t.Fatal(err, s.number)
	}
	path := s.path(s.number)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func([]byte) []byte{
		"shorter": func(b []byte) []byte { return b[:len(b)-1] },
		"version": func(b []byte) []byte { b[8]++; return b },
	} {
		if err := os.WriteFile(path, change(append([]byte(nil), data...)), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := newTruthSink(g, dir).Restore(state); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	if err := newTruthSink(g, dir).Restore(state[1:]); err == nil {
		t.Error("a state of another size was taken")
	}
}
