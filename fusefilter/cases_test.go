package fusefilter

import (
	"go/parser"
	"go/token"
	"math/bits"
	"os"
	"reflect"
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
		for _, summary := range []bool{false, true} {
			hashes := distinctHashes(rng, slots*each)
			bucket := func(slot int) []uint64 { return slices.Clone(hashes[slot*each : (slot+1)*each]) }
			var b Builder
			s := NewSet(kind, slots, summary)
			check := func(moment string) {
				t.Helper()
				masks := slices.Repeat([]uint64{1<<slots - 1}, len(hashes))
				s.Probe(hashes, masks)
				for i, m := range masks {
					if m>>(i/each)&1 == 0 {
						t.Fatalf("%s, summary %v, %s: bucket %d denies its hash %#x", kind, summary, moment, i/each, hashes[i])
					}
				}
			}
			check("before any filter")
			for n, slot := range rng.Perm(slots) {
				s.Install(slot, mustBuild(t, &b, kind, bucket(slot)))
				check("with " + strconv.Itoa(n+1) + " filters")
				if c := s.Cover(^uint64(0)); n%5 == 4 && c.Mask() != 0 {
					var union []uint64
					for m := c.Mask(); m != 0; m &= m - 1 {
						union = append(union, bucket(bits.TrailingZeros64(m))...)
					}
					sum, err := b.BuildSummary(Fuse8, union, c)
					if err != nil {
						t.Fatal(err)
					}
					s.InstallSummary(sum)
					check("with a summary of " + strconv.Itoa(n+1))
				}
			}
			// A bucket that takes keys again is maybe: its filter was built without them.
			s.SetMaybe(3)
			hashes[3*each] = rng.Uint64()
			check("after an insert")
		}
	}
}

// B53: no match, sixteen sealed buckets, no summary, a million B. How many go past the store, and how many lookups the
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
		s, _ := sealedSet(t, c.kind, slots, fewer(20_000), false, rng.Uint64)
		before := s.Stats()
		hashes, masks := make([]uint64, 1000), make([]uint64, 1000)
		skipped, lookups := 0, 0
		for range n / len(hashes) {
			for i := range hashes {
				hashes[i], masks[i] = rng.Uint64(), 1<<slots-1
			}
			s.Probe(hashes, masks)
			for _, m := range masks {
				if m == 0 {
					skipped++
				}
				lookups += bits.OnesCount64(m)
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
		if st := s.Stats(); c.kind.InRAM() && st.FilterMaybe-before.FilterMaybe != uint64(lookups) {
			t.Errorf("%s: %d lookups, but the filters count %d that they let through", c.kind, lookups, st.FilterMaybe-before.FilterMaybe)
		}
	}
}

// B56: a filter that was saved can come back broken. None is saved: this package reaches no file and no encoder, and
// what it makes shows nothing that another package could write. A filter that is built again from the same hashes is
// the same one, and denies none of them.
func TestFiltersAreBuiltAgainAndNotSaved(t *testing.T) {
	allowed := []string{"errors", "fmt", "math", "math/bits", "strings", "time", "github.com/FastFilter/xorfilter"}
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
	if seen < 8 {
		t.Fatalf("only %d files of the package were looked at", seen)
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Filter](), reflect.TypeFor[Summary](), reflect.TypeFor[Set](), reflect.TypeFor[OpenIndex]()} {
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
			for _, x := range h {
				if !again.Contains(x) || !shuffled.Contains(x) {
					t.Fatalf("%s of %d: built again it denies %#x", kind, n, x)
				}
			}
		}
	}
}

// Rebuilt over those of its keys that still wait, a bucket's filter denies none of them, whether the summary before it
// was built earlier, later, or begun earlier and installed later; and it says no to nearly all the others.
func TestRebuiltFilterKeepsLiveKeys(t *testing.T) {
	rng := newRand(t)
	const slots, each = 4, 2000
	type order struct{ cover, rebuild, install int }
	for _, kind := range filterKinds {
		for name, o := range map[string]order{
			"no summary":       {9, 1, 9},
			"summary before":   {0, 2, 1},
			"summary after":    {1, 0, 2},
			"summary at once":  {0, 1, 2},
			"rebuilt twice":    {1, 0, 3}, // again between cover and install
			"summary of fuse8": {0, 1, 2},
		} {
			sumKind := kind
			if name == "summary of fuse8" {
				sumKind = Fuse8
			}
			s, keys := sealedSet(t, kind, slots, each, true, rng.Uint64)
			live := make([][]uint64, slots)
			for slot := range live {
				live[slot] = slices.Clone(keys[slot])
			}
			var b Builder
			rebuild := func() {
				for slot := range 2 { // the others stay as they are
					h := live[slot]
					rng.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] })
					live[slot] = h[:len(h)/10]
					s.Replace(slot, mustBuild(t, &b, kind, slices.Clone(live[slot])))
				}
			}
			var sum *Summary
			for step := range 4 {
				if step == o.cover { // over what is live at this moment
					var err error
					if sum, err = b.BuildSummary(sumKind, slices.Concat(live...), s.Cover(^uint64(0))); err != nil {
						t.Fatal(err)
					}
				}
				if step == o.rebuild || name == "rebuilt twice" && step == 2 {
					rebuild()
				}
				if step == o.install {
					if got := s.InstallSummary(sum); got != 1<<slots-1 {
						t.Fatalf("%s, %s: the summary covers %b", kind, name, got)
					}
				}
			}
			dead := 0
			for slot := range slots {
				for _, h := range keys[slot] {
					maybe := probeOne(s, h, 1<<slots-1)>>slot&1 == 1
					switch isLive := slices.Contains(live[slot], h); {
					case isLive && !maybe:
						t.Fatalf("%s, %s: bucket %d denies %#x, which is live", kind, name, slot, h)
					case !isLive && maybe:
						dead++
					}
				}
			}
			if float64(dead) > 20+2*PerFilter(kind)*2*each {
				t.Errorf("%s, %s: %d of the keys that are gone still pass", kind, name, dead)
			}
		}
	}
}
