package fusefilter

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"math/bits"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// B49: after a restart the filters come back one by one, and at every moment of it each of 10,000 hashes finds the
// bucket that holds it; so does a hash that is added to a bucket after its filter was there.
func TestNoMatchLostWhileFiltersLoad(t *testing.T) {
	rng := newRand(t)
	const slots, each = 16, 625
	for _, kind := range allKinds {
		for _, lanes := range []bool{false, true} {
			hashes := distinctHashes(rng, slots*each)
			bucket := func(slot int) []uint64 { return slices.Clone(hashes[slot*each : (slot+1)*each]) }
			var b Builder
			s := NewSet(kind, slots)
			check := func(moment string) {
				t.Helper()
				masks := slices.Repeat([]uint64{1<<slots - 1}, len(hashes))
				probeMasks(s, hashes, masks)
				for i, m := range masks {
					if m>>(i/each)&1 == 0 {
						t.Fatalf("%s, lanes %v, %s: bucket %d denies its hash %#x", kind, lanes, moment, i/each, hashes[i])
					}
				}
			}
			check("before any filter")
			for n, slot := range rng.Perm(slots) {
				s.Install(slot, mustBuild(t, &b, kind, bucket(slot)))
				check("with " + strconv.Itoa(n+1) + " filters")
				if lanes && kind.InRAM() && n%5 == 4 {
					layMore(t, &b, s, bucket)
					check("with lanes of " + strconv.Itoa(n+1))
				}
			}
			// A bucket that takes keys again is maybe: its filter was built without them.
			s.SetMaybe(3)
			hashes[3*each] = rng.Uint64()
			check("after an insert")
		}
	}
}

// layMore makes lanes of all filters that stand alone, beside those that are lanes already.
func layMore(t *testing.T, b *Builder, s *Set, bucket func(slot int) []uint64) {
	t.Helper()
	cover := s.Cover(^uint64(0))
	base, laned := s.Lanes()
	if base == nil { // lanes of nothing yet
		var err error
		if base, _, err = b.NewLanes(s.Kind(), s.Slots(), []Part{{0, bucket(0)}}, Cover{}); err != nil {
			t.Fatal(err)
		}
	}
	var parts []Part
	for m := cover.Mask() &^ laned; m != 0; m &= m - 1 {
		parts = append(parts, Part{bits.TrailingZeros64(m), bucket(bits.TrailingZeros64(m))})
	}
	l, _, err := b.AddLanes(base, laned, parts, cover)
	if errors.Is(err, ErrNoFit) { // seldom: two keys with the same three places
		for m := laned; m != 0; m &= m - 1 {
			parts = append(parts, Part{bits.TrailingZeros64(m), bucket(bits.TrailingZeros64(m))})
		}
		l, _, err = b.NewLanes(s.Kind(), s.Slots(), parts, cover)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := s.InstallLanes(l); got != cover.Mask() {
		t.Fatalf("the lanes cover %b, want %b", got, cover.Mask())
	}
}

// B53: no match, sixteen sealed buckets, a million B. How many go past the store, and how many lookups the
// others cost, by the counts that a report's numbers are made of: a B with bits left costs a lookup for each of them.
func TestShareOfProbesThatSkipTheStore(t *testing.T) {
	rng := newRand(t)
	const slots = 16
	n := fewer(1_000_000)
	for _, c := range []struct {
		kind        Kind
		skip        float64 // at least, in percent
		notMoreThan float64
		lookups     float64 // a B
	}{
		{Fuse8, 93.8, 94.1, 16.0 / (1 << 8)}, // not the 99.6 % of one filter
		{Fuse16, 99.97, 99.98, 16.0 / (1 << 16)},
		{Fuse32, 99.9999, 100, 16.0 / (1 << 32)},
		{None, 0, 0, 16},
		{Bloom, 0, 0, 16}, // each of them a question to the store, which its filter may answer
	} {
		s, _ := sealedSet(t, c.kind, slots, fewer(20_000), rng.Uint64)
		before := s.Stats()
		hashes, masks := make([]uint64, 1000), make([]uint64, 1000)
		skipped, lookups := 0, 0
		var hits []Hit
		for range n / len(hashes) {
			for i := range hashes {
				hashes[i] = rng.Uint64()
			}
			hits = s.Probe(hashes, 1<<slots-1, hits[:0])
			clear(masks)
			for _, h := range hits {
				masks[h.Pos] |= h.Mask
				lookups += bits.OnesCount64(h.Mask)
			}
			for _, m := range masks {
				if m == 0 {
					skipped++
				}
			}
		}
		share := 100 * float64(skipped) / float64(n)
		t.Logf("%s: %.4f %% of %d B skip the store, %d lookups", c.kind, share, n, lookups)
		slack := 0.0
		if raceEnabled {
			slack = 0.2 // of a tenth of the B
		}
		if share < c.skip-slack || share > c.notMoreThan+slack {
			t.Errorf("%s: %.4f %% of the B skip the store, want %v to %v %%", c.kind, share, c.skip, c.notMoreThan)
		}
		if lo, hi := fiveSigma(n*slots, c.lookups/slots); float64(lookups) < lo || float64(lookups) > hi {
			t.Errorf("%s: %d lookups, want %.0f to %.0f", c.kind, lookups, lo, hi)
		}
		if st := s.Stats(); c.kind.InRAM() && st.Hits-before.Hits != uint64(lookups) {
			t.Errorf("%s: %d lookups, but the filters count %d that they let through", c.kind, lookups, st.Hits-before.Hits)
		}
	}
}

// B56: a filter that was saved can come back broken. None is saved: this package reaches no file and no encoder, and
// what it makes shows nothing that another package could write. A filter that is built again from the same hashes is
// the same one, and denies none of them.
func TestFiltersAreBuiltAgainAndNotSaved(t *testing.T) {
	allowed := []string{"errors", "fmt", "math", "math/bits", "slices", "strings", "time", "unsafe", "C", "github.com/FastFilter/xorfilter"}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		seen++
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range parsed.Imports {
			if path, _ := strconv.Unquote(imp.Path.Value); !slices.Contains(allowed, path) {
				t.Errorf("%s imports %s: can a filter be written to a file now?", f.Name(), path)
			}
		}
	}
	kernel, err := os.ReadFile("kernel.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, inc := range regexp.MustCompile(`#include (.*)`).FindAllStringSubmatch(string(kernel), -1) {
		if !slices.Contains([]string{`"kernel.h"`, "<immintrin.h>"}, inc[1]) {
			t.Errorf("kernel.c includes %s: can a filter be written to a file now?", inc[1])
		}
	}
	if seen < 12 {
		t.Fatalf("only %d files of the package were looked at", seen)
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Filter](), reflect.TypeFor[Lanes](), reflect.TypeFor[Set](), reflect.TypeFor[OpenIndex]()} {
		for i := range typ.NumField() {
			if typ.Field(i).IsExported() {
				t.Errorf("%s shows its field %s", typ, typ.Field(i).Name)
			}
		}
		for i := range reflect.PointerTo(typ).NumMethod() {
			name := reflect.PointerTo(typ).Method(i).Name
			for _, way := range []string{"Marshal", "Encode", "Write", "Save", "Append"} {
				if strings.Contains(name, way) {
					t.Errorf("%s has a method %s", typ, name)
				}
			}
		}
	}

	rng := newRand(t)
	var used Builder
	for _, kind := range filterKinds {
		for _, n := range []int{1, 100, 11_500, fewer(200_000)} {
			h := distinctHashes(rng, n)
			first := mustBuild(t, new(Builder), kind, slices.Clone(h))
			mustBuild(t, &used, kind, distinctHashes(rng, 1+rng.IntN(2*n))) // another bucket in between
			again := mustBuild(t, &used, kind, slices.Clone(h))
			if !reflect.DeepEqual(first.t8, again.t8) || !reflect.DeepEqual(first.t16, again.t16) || !reflect.DeepEqual(first.t32, again.t32) {
				t.Errorf("%s of %d: built again it is another filter", kind, n)
			}
			rng.Shuffle(n, func(i, j int) { h[i], h[j] = h[j], h[i] })
			shuffled := mustBuild(t, &used, kind, slices.Clone(h)) // a scan may give them in another order
			l, same := lanesOf(t, new(Builder), kind, h), lanesOf(t, &used, kind, h)
			if !slices.Equal(l.rows, same.rows) || l.geometry != same.geometry {
				t.Errorf("%s of %d: built again they are other lanes", kind, n)
			}
			for _, x := range h {
				if !again.Contains(x) || !shuffled.Contains(x) {
					t.Fatalf("%s of %d: built again it denies %#x", kind, n, x)
				}
			}
		}
	}
}

// lanesOf has the same keys in two of five lanes.
func lanesOf(t *testing.T, b *Builder, kind Kind, h []uint64) *Lanes {
	t.Helper()
	l, _, err := b.NewLanes(kind, 5, []Part{{1, h}, {4, h}}, Cover{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Rebuilt over those of its keys that still wait, a bucket's filter denies none of them, whether lanes with it were built
// earlier, later, or begun earlier and installed later; and it says no to nearly all the others, unless such lanes that
// still have them took its place.
func TestRebuiltFilterKeepsLiveKeys(t *testing.T) {
	rng := newRand(t)
	const slots, each = 4, 2000
	type order struct{ cover, rebuild, again, install int }
	for _, kind := range filterKinds {
		for name, o := range map[string]order{
			"no lanes":      {9, 1, 9, 9},
			"lanes before":  {0, 2, 9, 1},
			"lanes after":   {1, 0, 9, 2},
			"lanes at once": {0, 1, 9, 2},
			"rebuilt twice": {1, 0, 2, 3}, // again between cover and install
		} {
			s, keys := sealedSet(t, kind, slots, each, rng.Uint64)
			live := make([][]uint64, slots)
			for slot := range live {
				live[slot] = slices.Clone(keys[slot])
			}
			known := slices.Clone(live) // what the filters may have
			var b Builder
			var lanes *Lanes
			var inLanes [][]uint64
			for step := range 4 {
				if step == o.cover { // over what is live at this moment
					var err error
					cover := s.Cover(^uint64(0))
					inLanes = slices.Clone(live)
					if lanes, _, err = b.NewLanes(kind, slots, partsOf(cover.Mask(), live), cover); err != nil {
						t.Fatal(err)
					}
				}
				if step == o.rebuild || step == o.again {
					for slot := range 2 { // the others stay as they are
						h := slices.Clone(live[slot])
						rng.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] })
						live[slot] = h[:len(h)/10]
						known[slot] = live[slot]
						s.Replace(slot, mustBuild(t, &b, kind, slices.Clone(live[slot])))
					}
				}
				if step == o.install {
					if got := s.InstallLanes(lanes); got != 1<<slots-1 {
						t.Fatalf("%s, %s: the lanes cover %b", kind, name, got)
					}
					known = inLanes
				}
			}
			dead := checkRebuilt(t, fmt.Sprintf("%s, %s", kind, name), s, keys, live, known)
			if dead == 0 && name != "lanes at once" {
				t.Errorf("%s, %s: no key is gone", kind, name)
			}
		}
	}
}

// checkRebuilt returns how many keys were asked for that no filter may know any more.
func checkRebuilt(t *testing.T, what string, s *Set, keys, live, known [][]uint64) (dead int) {
	t.Helper()
	passed := 0
	for slot := range keys {
		isLive, isKnown := setOf(live[slot]), setOf(known[slot])
		for _, h := range keys[slot] {
			maybe := probeOne(s, h, ^uint64(0))>>slot&1 == 1
			switch {
			case isLive[h] && !maybe:
				t.Fatalf("%s: bucket %d denies %#x, which is live", what, slot, h)
			case !isKnown[h]:
				dead++
				if maybe {
					passed++
				}
			}
		}
	}
	if float64(passed) > 20+2*PerFilter(s.Kind())*float64(dead) {
		t.Errorf("%s: %d of %d keys that are gone still pass", what, passed, dead)
	}
	return dead
}

func setOf(list []uint64) map[uint64]bool {
	set := make(map[uint64]bool, len(list))
	for _, h := range list {
		set[h] = true
	}
	return set
}
