package pipeline

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"joinbench/loadgen"
)

// TestPairsOfAnyLength: the files of pairs stay small however many come, and a sink that is restored from any commit that may
// be the last one, with whatever the lost life had written behind it, judges the run as a whole.
func TestPairsOfAnyLength(t *testing.T) {
	for _, durable := range []bool{false, true} {
		t.Run(fmt.Sprintf("durable %v", durable), func(t *testing.T) { pairsOfAnyLength(t, durable) })
	}
}

func pairsOfAnyLength(t *testing.T, durable bool) {
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
		s := newTruthSink(g, plain(g), dir, durable)
		s.roll = 100 * pairBytes
		if err := s.Restore(state); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		return s
	}
	const spuriousEvery = 5000
	type commit struct {
		state       []byte
		next, wrong int64
	}
	var now, last, synced commit // being made; the last one; the last that no power cut undoes
	expected := g.ExpectedMatches()
	s := open(nil)
	lives, most, bound := 1, 0, 2
	if durable {
		bound = 60 // a Sync comes every eight commits or so, a kill every twenty
	}
	for now.next < g.BCount() {
		for range 1 + rnd.IntN(300) {
			if now.next == g.BCount() {
				break
			}
			i, ok := g.Expected(now.next)
			if !ok && now.next%spuriousEvery == 1 {
				i, ok = 0, true
				now.wrong++
			}
			if ok {
				if err := s.pair(now.next, i); err != nil {
					t.Fatal(err)
				}
			}
			now.next++
		}
		if now.state, err = s.State(nil); err != nil {
			t.Fatal(err)
		}
		switch n := rnd.IntN(60); {
		case n < 2: // killed before this commit
			_ = s.close()
			now, lives = last, lives+1
			s = open(now.state)
			continue
		case n == 2 && durable: // a power cut
			_ = s.close()
			now, last, lives = synced, synced, lives+1
			s = open(now.state)
			continue
		}
		last = now
		if durable && rnd.IntN(8) == 0 {
			if err := s.Sync(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if rnd.IntN(4) == 0 { // a power cut before the log was synced
				_ = s.close()
				now, last, lives = synced, synced, lives+1
				s = open(now.state)
				continue
			}
			synced = last
		}
		files, total := pairsFiles(t, dir)
		most = max(most, total)
		if files > bound {
			t.Fatalf("seed %d: %d files of pairs", seed, files)
		}
	}
	_ = s.close()
	s = open(last.state)
	defer s.close()
	for range 2 { // two, the second of which sees what the first did
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if files, _ := pairsFiles(t, dir); files != 1 {
		t.Errorf("seed %d: %d files are left", seed, files)
	}
	v := s.verifier.Result()
	if v.Matches != expected || v.Missing != 0 || v.Duplicated != 0 || v.Spurious != last.wrong || v.Spurious == 0 || s.outputs != uint64(expected+last.wrong) {
		t.Errorf("seed %d, %d lives: %+v, %d outputs; want %d and %d spurious", seed, lives, v, s.outputs, expected, last.wrong)
	}
	if all := int(expected) * pairBytes; lives < 5 || s.number < 20 || !durable && most > all/4 {
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

// plain is the truth of an inner join without more.
func plain(g *loadgen.Gen) *loadgen.Truth {
	t, err := g.Truth(g.Config().Plain())
	if err != nil {
		panic(err)
	}
	return t
}

// TestPairsThatWereChanged: a file that is shorter than its commit, or is no such file, is refused.
func TestPairsThatWereChanged(t *testing.T) {
	g, err := loadgen.New(loadgen.Config{Pending: 1000, BEvents: 1000, MatchRate: 0.5, After: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := newTruthSink(g, plain(g), dir, false)
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
		if err := newTruthSink(g, plain(g), dir, false).Restore(state); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	if err := newTruthSink(g, plain(g), dir, false).Restore(state[1:]); err == nil {
		t.Error("a state of another size was taken")
	}
}
