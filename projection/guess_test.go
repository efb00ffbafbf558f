package projection

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// guessScanner has a plan that goes into some of the objects of the documents below.
func guessScanner(t *testing.T) *scanner {
	p := newPlan()
	for _, text := range []string{"$.id", "$.sub.id", "$.sub.x", "$.n9"} {
		path, err := ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		p.add(path)
	}
	return newScanner(p)
}

// scanned scans and tells hits and misses, after it has compared the spans with those of a scanner without a past.
func scanned(t *testing.T, s *scanner, doc string) (hits, misses int) {
	t.Helper()
	fresh := newScanner(s.plan)
	ok, want := s.scan([]byte(doc)), fresh.scan([]byte(doc))
	if ok != want || (ok && fmt.Sprint(s.spans) != fmt.Sprint(fresh.spans)) {
		t.Fatalf("%s: %v %v, without a past %v %v", doc, ok, s.spans, want, fresh.spans)
	}
	return s.known.hits, s.known.misses
}

func TestGuess(t *testing.T) {
	s := guessScanner(t)
	for i, c := range []struct {
		doc          string
		hits, misses int
	}{
		{`{"id":1,"sub":{"id":2,"x":3},"other":{"id":4,"x":5},"n9":6}`, 0, 8},
		{`{"id":1,"sub":{"id":2,"x":3},"other":{"id":4,"x":5},"n9":6}`, 8, 0},
		{`{"id":1,"sub":{"x":3},"n9":6}`, 2, 2},                                                  // left out: two places to take up again
		{`{"id":1,"new":0,"sub":{"id":2,"x":3},"other":{"id":4,"x":5},"n9":6}`, 8, 1},            // one more
		{`{"id":1,"new":0,"sub":{"id":2,"x":3},"other":{"id":4,"x":5},"n9":6}`, 9, 0},            // learnt
		{`{"id":1,"sub":{"id":2,"x":3},"other":{"id":4,"x":5},"n9":6}`, 7, 1},                    // and left out again
		{`{"id" :1,"new":0,"sub":{"id":2,"x":3},"other":{"id":4,"x":5},"n9":6}`, 7, 1},           // "id" is not to be guessed; taken up at "new"
		{`{"id":1,"id":2,"sub":{"id":2,"id":9},"sub":{"x":1},"other":{},"n9":6,"n9":7}`, -1, -1}, // duplicates
		{`{"other":{"id":1,"x":2},"sub":{"x":1,"id":2}}`, -1, -1},                                // same names, other objects
		{`{"id":1,"ne`, -1, -1}, {`{"id":`, -1, -1}, {`{"id"`, -1, -1}, {`{"id":1,"new":0`, -1, -1},
		{`{"\u0069d":1,"` + strings.Repeat("long", 20) + `":1,"n9":1}`, -1, -1},
	} {
		hits, misses := scanned(t, s, c.doc)
		if c.hits >= 0 && (hits != c.hits || misses != c.misses) {
			t.Errorf("document %d %s: %d hits, %d misses, want %d, %d", i, c.doc, hits, misses, c.hits, c.misses)
		}
	}
}

// TestGuessManyNames: more names than there are places to remember, or to expect.
func TestGuessManyNames(t *testing.T) {
	s := guessScanner(t)
	doc := func(n, from int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"n%d":%d`, from+i, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	for round := range 5 {
		for _, n := range []int{maxOrder - 1, maxOrder, maxOrder + 1, 1000} {
			scanned(t, s, doc(n, 0))
			scanned(t, s, doc(n, round*n))
		}
	}
}

// TestGuessRests: names in no order stop the guessing, and order brings it back.
func TestGuessRests(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, seed))
	s := guessScanner(t)
	members := strings.Split(`"id":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":0,"k":1,"l":2,"m":3,"n":4,"o":5,"p":6,"q":7,"r":8,"s":9,"t":0`, ",")
	asked := 0
	for range 2000 {
		rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		hits, misses := scanned(t, s, "{"+strings.Join(members, ",")+"}")
		if hits+misses > 0 {
			asked++
		}
	}
	if asked > 400 {
		t.Errorf("guessed in %d of 2000 documents without order", asked)
	}
	ordered := "{" + strings.Join(members, ",") + "}"
	for range restFor + 5 {
		scanned(t, s, ordered)
	}
	if hits, misses := scanned(t, s, ordered); hits != len(members) || misses != 0 {
		t.Errorf("in order again: %d hits, %d misses", hits, misses)
	}
}
