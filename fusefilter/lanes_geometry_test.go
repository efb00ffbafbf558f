package fusefilter

import (
	"math"
	"testing"
)

// builds tries to settle n random keys n times over. It says how often a few keys were left, which is two with the same
// three places or, seldom, more that share theirs, and how often many were: then there was no room. Of 2,500,000 builds of 20
// keys 24 left nine to eleven, and none more; without room it is a share of all keys.
func (p *peeling) builds(g geometry, keys, runs int, next func() uint64) (few, many int) {
	h := make([]uint64, keys)
	for range runs {
		for i := range h {
			h[i] = next()
		}
		g.seed = next()
		if p.order(&g, h) {
			continue
		}
		if keys-len(p.taken) <= 16 {
			few++
		} else {
			many++
		}
	}
	return few, many
}

// The figures at headroom: with it no lane fails for want of room, at the sizes at which the rounding to whole segments
// leaves the least of it; without it most do. Two keys with the same places come as often as they should.
func TestLaneGeometry(t *testing.T) {
	rng := newRand(t)
	var p peeling
	for _, c := range []struct {
		capacity int
		tight    float64 // share of builds that fail without headroom, at least
	}{
		{20, 0}, {100, 0}, {1_000, 0}, {1_721, 0.01}, {3_551, 0.5}, {11_521, 0.7}, {15_788, 0.1}, {37_453, 0.5}, {100_000, 0}, {126_130, 0.1}, {312_500, 0},
	} {
		if raceEnabled && c.capacity > 20_000 {
			continue
		}
		runs := max(6, min(fewer(5_000), fewer(1_500_000)/c.capacity))
		g, without := geometryFor(c.capacity), geometryWith(c.capacity, 0)
		few, many := p.builds(g, c.capacity, runs, rng.Uint64)
		n := float64(c.capacity)
		pairs := 1 - math.Exp(-n*n/(2*float64(g.span)*float64(g.seg)*float64(g.seg)))
		tightRuns := min(runs, 60)
		_, tight := p.builds(without, c.capacity, tightRuns, rng.Uint64)
		t.Logf("%d keys, %.4f cells a key: %d of %d builds failed for want of room, %d of %d without headroom; %d (%.2f %%, expected %.2f) for two keys with the same places",
			c.capacity, float64(g.size())/n, many, runs, tight, tightRuns, few, 100*float64(few)/float64(runs), 100*pairs)
		if many > 0 {
			t.Errorf("%d keys: %d of %d builds failed for want of room", c.capacity, many, runs)
		}
		lo, _ := fiveSigma(runs, pairs)
		if _, hi := fiveSigma(runs, 1.5*pairs+0.003); float64(few) < lo || float64(few) > hi { // the triples
			t.Errorf("%d keys: %d of %d builds failed for two keys with the same places, expected %.1f to %.1f", c.capacity, few, runs, lo, hi)
		}
		if tightRuns > 30 && float64(tight) < c.tight*float64(tightRuns) {
			t.Errorf("%d keys: %d of %d builds failed without headroom; is it not needed?", c.capacity, tight, tightRuns)
		}
	}
}

// Sixteen full lanes take 18.7 bits a key at the usual size, and what a row has over where the number of slots is no
// power of two.
func TestLanesSize(t *testing.T) {
	for _, c := range []struct {
		kind  Kind
		slots int
		bits  float64 // a key of a full bucket of 312,500
	}{{Fuse16, 16, 18.67}, {Fuse16, 13, 18.67 * 16 / 13}, {Fuse8, 16, 9.33}, {Fuse32, 16, 37.33}, {Fuse16, 64, 18.67}, {Fuse8, 1, 8 * 9.33}} {
		const keys = 312_500
		g := geometryFor(keys + keys/slack)
		bits := 64 * float64(g.size()*rowWords(c.kind, c.slots)) / float64(keys*c.slots)
		if math.Abs(bits-c.bits) > 0.02*c.bits/18.67 {
			t.Errorf("%s, %d slots: %.2f bits a key, want %.2f", c.kind, c.slots, bits, c.bits)
		}
	}
}

// However many buckets there are and however small, some seed suits them all: lanes of small buckets collide most.
func TestLanesOfManySmallBuckets(t *testing.T) {
	rng := newRand(t)
	var b Builder
	for range max(3, fewer(20)) {
		for _, n := range []int{1, 2, 16, 50, 200, 3000} {
			var parts []Part
			for slot := range MaxSlots {
				parts = append(parts, Part{slot, distinctHashes(rng, n)})
			}
			if _, _, err := b.NewLanes(Fuse16, MaxSlots, parts, Cover{}); err != nil {
				t.Fatalf("64 buckets of %d: %v", n, err)
			}
		}
	}
}
