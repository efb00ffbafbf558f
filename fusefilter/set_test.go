package fusefilter

import (
	"errors"
	"math"
	"math/bits"
	"testing"
)

// sealedSet has n slots with filters of `each` keys, and gives their keys too.
func sealedSet(t *testing.T, kind Kind, n, each int, summary bool, next func() uint64) (*Set, [][]uint64) {
	t.Helper()
	var b Builder
	s := NewSet(kind, n, summary)
	keys := make([][]uint64, n)
	for slot := range keys {
		for range each {
			keys[slot] = append(keys[slot], next())
		}
		s.Install(slot, mustBuild(t, &b, kind, append([]uint64(nil), keys[slot]...)))
	}
	return s, keys
}

func summarise(t *testing.T, s *Set, kind Kind, mask uint64, keys [][]uint64) {
	t.Helper()
	c := s.Cover(mask)
	var union []uint64
	for m := c.Mask(); m != 0; m &= m - 1 {
		union = append(union, keys[bits.TrailingZeros64(m)]...)
	}
	sum, err := new(Builder).BuildSummary(kind, union, c)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.InstallSummary(sum); got != mask {
		t.Fatalf("the summary covers %b, want %b", got, mask)
	}
}

func probeOne(s *Set, hash, mask uint64) uint64 {
	m := []uint64{mask}
	s.Probe([]uint64{hash}, m)
	return m[0]
}

// Sixteen filters multiply the false positives (B53), by as much as Predict says.
func TestFalsePositivesOfSixteenSlots(t *testing.T) {
	rng := newRand(t)
	const slots = 16
	ask := fewer(2_000_000)
	figures := map[Kind]float64{Fuse8: 0.0607, Fuse16: 0.000244, Fuse32: 3.725e-9}
	for _, kind := range filterKinds {
		s, _ := sealedSet(t, kind, slots, fewer(20_000), false, rng.Uint64)
		p := Predict(kind, slots)
		if math.Abs(p-figures[kind]) > 0.01*figures[kind] || p != s.Predict(^uint64(0)) {
			t.Fatalf("%s: predicted %v for %d filters", kind, p, slots)
		}
		got := countMaybe(s, ask, rng.Uint64)
		lo, hi := fiveSigma(ask, p)
		t.Logf("%s: %d of %d, %.4f %%, predicted %.4f %%", kind, got, ask, 100*float64(got)/float64(ask), 100*p)
		if float64(got) < lo || float64(got) > hi {
			t.Errorf("%s: %d of %d absent hashes pass, predicted %.0f to %.0f", kind, got, ask, lo, hi)
		}
		st := s.Stats()
		if st.Hashes != uint64(ask) || st.FilterAsked != uint64(ask*slots) || st.SummaryAsked != 0 {
			t.Errorf("%s: %+v", kind, st)
		}
		lo, hi = fiveSigma(ask*slots, PerFilter(kind))
		if n := float64(st.FilterMaybe); n < lo || n > hi {
			t.Errorf("%s: %.0f of %d questions to one filter pass, predicted %.0f to %.0f", kind, n, ask*slots, lo, hi)
		}
	}
}

// countMaybe probes n absent hashes for all slots and counts those with a bit left.
func countMaybe(s *Set, n int, next func() uint64) int {
	hashes, masks := make([]uint64, 5000), make([]uint64, 5000)
	got := 0
	for done := 0; done < n; done += len(hashes) {
		for i := range hashes {
			hashes[i], masks[i] = next(), uint64(1)<<s.Slots()-1
		}
		s.Probe(hashes, masks)
		for _, m := range masks {
			got += int(nonzero(m))
		}
	}
	return got
}

// A summary makes false positives rarer, never more frequent, and as rare as predicted. The kinds are
// mixed so that the numbers are large enough to count.
func TestFalsePositivesWithSummary(t *testing.T) {
	rng := newRand(t)
	const slots = 16
	ask := fewer(2_000_000)
	for _, covered := range []uint64{1<<16 - 1, 1<<12 - 1} {
		s, keys := sealedSet(t, Fuse8, slots, 5000, true, rng.Uint64)
		summarise(t, s, Fuse8, covered, keys)
		p := s.Predict(1<<16 - 1)
		got := countMaybe(s, ask, rng.Uint64)
		lo, hi := fiveSigma(ask, p)
		t.Logf("covered %b: %d of %d, predicted %.0f to %.0f", covered, got, ask, lo, hi)
		if float64(got) < lo || float64(got) > hi {
			t.Errorf("%d covered: %d of %d absent hashes pass, predicted %.0f to %.0f", bits.OnesCount64(covered), got, ask, lo, hi)
		}
		st := s.Stats()
		lo, hi = fiveSigma(ask, 1-PerFilter(Fuse8))
		if n := float64(st.SummaryNo); st.SummaryAsked != uint64(ask) || n < lo || n > hi {
			t.Errorf("the summary denied %.0f of %d, predicted %.0f to %.0f", n, st.SummaryAsked, lo, hi)
		}
	}
}

func TestPredict(t *testing.T) {
	close := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12+1e-9*want {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	close("fuse8, 16", Predict(Fuse8, 16), 1-math.Pow(255.0/256, 16))
	close("fuse16, 1", Predict(Fuse16, 1), 1.0/65536)
	close("none, 1", Predict(None, 1), 1)
	close("fuse8, 0", Predict(Fuse8, 0), 0)
	// Every outcome spelled out: one filter alone, two covered by a summary.
	p, q := 1.0/256, 1.0/65536
	want := 0.0
	for outcome := range 16 {
		prob := 1.0
		for i, x := range []float64{p, p, p, q} { // alone, covered, covered, summary
			if outcome>>i&1 == 1 {
				prob *= x
			} else {
				prob *= 1 - x
			}
		}
		alone, covered, summary := outcome&1 != 0, outcome&6 != 0, outcome&8 != 0
		if alone || summary && covered {
			want += prob
		}
	}
	close("summary", PredictSummary(Fuse8, 1, Fuse16, 2), want)
	close("none behind a summary", PredictSummary(None, 0, Fuse8, 3), p)
	close("fuse32, 2", Predict(Fuse32, 2), 2*math.Pow(2, -32)-math.Pow(2, -64))
	// Sets whose filters are not here predict what the sealed buckets of the mask will say.
	s := NewSet(Bloom, 5, true)
	s.SetEmpty(2)
	close("a set of bloom", s.Predict(0b1_0111), Predict(Bloom, 3))
	close("a set of bloom, beyond its slots", s.Predict(^uint64(0)), Predict(Bloom, 4))
	s = NewSet(None, 5, true)
	close("a set of none", s.Predict(0b11), 1)
	close("a set of none, nothing asked", s.Predict(0), 0)
}

// B49: what a set says before anyone told it about its buckets, and in each state after.
func TestSlotStates(t *testing.T) {
	for _, kind := range allKinds {
		var b Builder
		s := NewSet(kind, 5, true)
		const all = 0b11111
		if got := probeOne(s, 1, all); got != all {
			t.Errorf("%s: a new set answers %b; what is not known is maybe", kind, got)
		}
		s.SetEmpty(0)
		s.SetMaybe(1)
		s.Install(2, mustBuild(t, &b, kind, []uint64{1, 2, 3}))
		s.Install(3, nil) // the build failed
		s.Install(4, mustBuild(t, &b, kind, nil))
		if got := probeOne(s, 1, all); got != 0b01110 {
			t.Errorf("%s: hash 1 gets %b", kind, got)
		}
		if got := probeOne(s, 1, 0b00101); got != 0b00100 {
			t.Errorf("%s: bits that were not asked came back: %b", kind, got)
		}
		filtered := Maybe
		if kind.InRAM() {
			filtered = Filtered
		}
		for slot, want := range []State{Empty, Maybe, filtered, Maybe, Empty} {
			if got := s.State(slot); got != want {
				t.Errorf("%s: slot %d is in state %d, want %d", kind, slot, got, want)
			}
		}
		s.Clear(2)
		if got := probeOne(s, 1, all); got != 0b01010 || s.Filter(2) != nil || s.Bytes() != 0 {
			t.Errorf("%s: after Clear %b, filter %v, %d bytes", kind, got, s.Filter(2), s.Bytes())
		}
		s.SetMaybe(2)
		if got := probeOne(s, 1, all); got != 0b01110 {
			t.Errorf("%s: a slot that is used again says %b", kind, got)
		}
		if got := probeOne(s, 1, 1<<5|1<<63); got != 1<<5|1<<63 {
			t.Errorf("%s: bits beyond the slots became %b", kind, got)
		}
	}
}

// All 64 slots, and batches around the size of a chunk: every hash keeps exactly its own bit, but for
// false positives of 16 bits.
func TestProbeBatches(t *testing.T) {
	rng := newRand(t)
	s, keys := sealedSet(t, Fuse16, MaxSlots, 300, true, rng.Uint64)
	for _, summary := range []bool{false, true} {
		if summary {
			summarise(t, s, Fuse16, ^uint64(0), keys)
		}
		for _, n := range []int{0, 1, chunk - 1, chunk, chunk + 1, 3*chunk + 7} {
			hashes, masks, slots := make([]uint64, n), make([]uint64, n+3), make([]int, n)
			for i := range hashes {
				slots[i] = rng.IntN(MaxSlots)
				hashes[i], masks[i] = keys[slots[i]][rng.IntN(300)], ^uint64(0)
			}
			s.Probe(hashes, masks)
			extra := 0
			for i, slot := range slots {
				if masks[i]&(1<<slot) == 0 {
					t.Fatalf("batch of %d: hash %d lost its slot %d", n, i, slot)
				}
				extra += bits.OnesCount64(masks[i]) - 1
			}
			if extra > 20+n/50 {
				t.Errorf("batch of %d: %d bits too many", n, extra)
			}
			if masks[n] != 0 || masks[n+2] != 0 {
				t.Error("masks beyond the batch were touched")
			}
		}
	}
}

func TestSummaryCover(t *testing.T) {
	rng := newRand(t)
	s, keys := sealedSet(t, Fuse16, 4, 100, true, rng.Uint64)
	s.SetMaybe(3)
	if got := s.Cover(^uint64(0)).mask; got != 0b0111 {
		t.Fatalf("a cover of %b; only sealed buckets can be covered", got)
	}
	summarise(t, s, Fuse16, 0b0111, keys)
	for _, ended := range []func(){
		func() { s.Clear(0) },
		func() { s.SetMaybe(1) },
		func() { s.Install(2, mustBuild(t, new(Builder), Fuse16, []uint64{1})) },
	} {
		_, before := s.Summary()
		ended()
		if f, after := s.Summary(); bits.OnesCount64(after) != bits.OnesCount64(before)-1 || (f == nil) != (after == 0) {
			t.Errorf("cover %b became %b, filter %v", before, after, f)
		}
	}
}

// A slot that was used again while its summary was being built is not covered by it.
func TestSummaryOfABucketThatIsGone(t *testing.T) {
	rng := newRand(t)
	s, keys := sealedSet(t, Fuse16, 2, 1000, true, rng.Uint64)
	cover := s.Cover(0b11)
	sum, err := new(Builder).BuildSummary(Fuse16, append(append([]uint64(nil), keys[0]...), keys[1]...), cover)
	if err != nil {
		t.Fatal(err)
	}
	s.Clear(1)
	s.SetMaybe(1)
	fresh := distinctHashes(rng, 1000)
	s.Install(1, mustBuild(t, new(Builder), Fuse16, append([]uint64(nil), fresh...)))
	if got := s.InstallSummary(sum); got != 0b01 {
		t.Fatalf("covered %b, want only the bucket that is still there", got)
	}
	for _, h := range fresh {
		if probeOne(s, h, 0b11)&0b10 == 0 {
			t.Fatalf("hash %#x of the new bucket was denied", h)
		}
	}
	s.Clear(0)
	if got := s.InstallSummary(sum); got != 0 {
		t.Errorf("a summary of buckets that are all gone covers %b", got)
	}
}

func TestReplaceKeepsTheCover(t *testing.T) {
	rng := newRand(t)
	s, keys := sealedSet(t, Fuse16, 2, 1000, true, rng.Uint64)
	summarise(t, s, Fuse16, 0b11, keys)
	var b Builder
	s.Replace(0, mustBuild(t, &b, Fuse16, append([]uint64(nil), keys[0][:10]...)))
	if _, covered := s.Summary(); covered != 0b11 || s.Filter(0).Keys() != 10 {
		t.Errorf("covered %b, filter of %d keys after Replace", covered, s.Filter(0).Keys())
	}
	s.Replace(0, mustBuild(t, &b, Fuse16, nil)) // nothing waits in it any more
	if _, covered := s.Summary(); covered != 0b10 || s.State(0) != Empty {
		t.Errorf("covered %b, state %d after Replace with nothing", covered, s.State(0))
	}
	mustPanic(t, "slot 0, which has no filter", func() { s.Replace(0, nil) })
}

func TestSummaryRefused(t *testing.T) {
	rng := newRand(t)
	s, keys := sealedSet(t, Fuse8, 2, 100, true, rng.Uint64)
	b := &Builder{}
	cover := s.Cover(0b11)
	for what, build := range map[string]func() (*Summary, error){
		"kind none":      func() (*Summary, error) { return b.BuildSummary(None, keys[0], cover) },
		"kind bloom":     func() (*Summary, error) { return b.BuildSummary(Bloom, keys[0], cover) },
		"no cover":       func() (*Summary, error) { return b.BuildSummary(Fuse8, keys[0], s.Cover(0)) },
		"too few hashes": func() (*Summary, error) { return b.BuildSummary(Fuse8, keys[0][:99], cover) },
		"injected failure": func() (*Summary, error) {
			b := &Builder{Before: func(Kind, int) error { return errors.New("x") }}
			return b.BuildSummary(Fuse8, keys[0], cover)
		},
	} {
		if sum, err := build(); sum != nil || !errors.Is(err, ErrBuild) {
			t.Errorf("%s: %v, %v", what, sum, err)
		}
	}
	sum, err := b.BuildSummary(Fuse8, append(append([]uint64(nil), keys[0]...), keys[1]...), cover)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := sealedSet(t, Fuse8, 2, 100, true, rng.Uint64)
	if got := other.InstallSummary(sum); got != 0 {
		t.Errorf("another set took the summary for %b", got)
	}
	s.SetSummary(false)
	if got := s.InstallSummary(sum); got != 0 {
		t.Errorf("a set without a summary took one for %b", got)
	}
	s.SetSummary(true)
	if got := s.InstallSummary(sum); got != 0b11 {
		t.Errorf("covered %b after the summary was switched on", got)
	}
	s.SetSummary(false)
	if f, covered := s.Summary(); f != nil || covered != 0 {
		t.Errorf("switched off, but %v covers %b", f, covered)
	}
}

func TestSetMisuse(t *testing.T) {
	mustPanic(t, "0 slots", func() { NewSet(Fuse8, 0, false) })
	mustPanic(t, "65 slots", func() { NewSet(Fuse8, 65, false) })
	mustPanic(t, "Kind(7)", func() { NewSet(Kind(7), 2, false) })
	s := NewSet(Fuse8, 2, false)
	mustPanic(t, "slot 2 of a set of 2", func() { s.SetEmpty(2) })
	mustPanic(t, "slot -1 of a set of 2", func() { s.Clear(-1) })
	f := mustBuild(t, new(Builder), Fuse16, []uint64{1})
	mustPanic(t, "fuse16 in a set of fuse8", func() { s.Install(0, f) })
}

func TestProbeAllocatesNothing(t *testing.T) {
	rng := newRand(t)
	for _, kind := range filterKinds {
		s, keys := sealedSet(t, kind, 16, 1000, true, rng.Uint64)
		hashes, masks := distinctHashes(rng, 3000), make([]uint64, 3000)
		probe := func() {
			for i := range masks {
				masks[i] = 1<<16 - 1
			}
			s.Probe(hashes, masks)
		}
		if got := testing.AllocsPerRun(10, probe); got != 0 {
			t.Errorf("%s without summary: %v allocations", kind, got)
		}
		summarise(t, s, kind, 1<<16-1, keys)
		if got := testing.AllocsPerRun(10, probe); got != 0 {
			t.Errorf("%s with summary: %v allocations", kind, got)
		}
	}
}
