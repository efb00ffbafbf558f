package fusefilter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// One op of a benchmark is one event (one hash, one row), so that the numbers of different batch sizes
// compare; only BenchmarkBuild is too coarse for that. They use a fixed seed: two runs ask the same.

const (
	benchSlots = 16
	benchBatch = 16384
	benchAsk   = 1 << 20 // distinct hashes that are asked; 8 MiB, read in order
)

func randomHashes(rng *rand.Rand, n int) []uint64 {
	h := make([]uint64, n)
	for i := range h {
		h[i] = rng.Uint64()
	}
	return h
}

// benchSet is a set of 16 sealed slots with the keys spread evenly.
func benchSet(b *testing.B, kind Kind, keys int, lanes bool) *Set {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var builder Builder
	s := NewSet(kind, benchSlots)
	var all [][]uint64
	for slot := range benchSlots {
		h := randomHashes(rng, keys/benchSlots)
		all = append(all, slices.Clone(h))
		f, err := builder.Build(kind, h)
		if err != nil {
			b.Fatal(err)
		}
		s.Install(slot, f)
	}
	if lanes {
		lay(b, s, 1<<benchSlots-1, all)
	}
	return s
}

// BenchmarkProbe asks sixteen sealed buckets for hashes that none of them has.
func BenchmarkProbe(b *testing.B) {
	ask := randomHashes(rand.New(rand.NewPCG(3, 4)), benchAsk)
	for _, keys := range []int{1_000_000, 5_000_000} {
		for _, kind := range filterKinds {
			for _, lanes := range []bool{true, false} {
				onOff := map[bool]string{true: "on", false: "off"}[lanes]
				b.Run(fmt.Sprintf("keys=%dM/filter=%s/lanes=%s", keys/1_000_000, kind, onOff), func(b *testing.B) {
					s := benchSet(b, kind, keys, lanes)
					var hits []Hit
					left := 0
					b.ReportAllocs()
					b.ResetTimer()
					for done, at := 0, 0; done < b.N; done += benchBatch {
						hits = s.Probe(ask[at:at+benchBatch], 1<<benchSlots-1, hits[:0])
						left += len(hits)
						at = (at + benchBatch) % benchAsk
					}
					b.ReportMetric(100*float64(left)/float64(s.Stats().Hashes), "hits-%")
					b.ReportMetric(float64(s.Bytes())/1e6, "MB")
				})
			}
		}
	}
}

// BenchmarkContains is one plain filter over all keys: what unit_ns is made of.
func BenchmarkContains(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 6))
	var builder Builder
	f, err := builder.Build(Fuse16, randomHashes(rng, 5_000_000))
	if err != nil {
		b.Fatal(err)
	}
	ask := randomHashes(rng, benchAsk)
	yes := 0
	b.ResetTimer()
	for i := range b.N {
		if f.Contains(ask[i%benchAsk]) {
			yes++
		}
	}
}

// BenchmarkOpenFind asks one open bucket of 312,500 rows.
func BenchmarkOpenFind(b *testing.B) {
	const rows = 312_500
	rng := rand.New(rand.NewPCG(7, 8))
	for _, hits := range []int{0, 1, 50, 100} {
		b.Run(fmt.Sprintf("hits=%d%%", hits), func(b *testing.B) {
			x := NewOpenIndex(rows)
			have := randomHashes(rng, rows)
			for i, h := range have {
				x.Insert(h, uint32(i))
			}
			ask := randomHashes(rng, benchAsk)
			for i := range ask {
				if rng.IntN(100) < hits {
					ask[i] = have[rng.IntN(rows)]
				}
			}
			var found []Found
			b.ReportAllocs()
			b.ResetTimer()
			for done, at := 0, 0; done < b.N; done += benchBatch {
				found = x.FindBatch(ask[at:at+benchBatch], found[:0])
				at = (at + benchBatch) % benchAsk
			}
			b.ReportMetric(float64(x.Bytes())/rows, "B/row")
		})
	}
}

// BenchmarkOpenInsert fills an open bucket of 312,500 rows, again and again.
func BenchmarkOpenInsert(b *testing.B) {
	const rows = 312_500
	have := randomHashes(rand.New(rand.NewPCG(9, 10)), rows)
	for _, hint := range []int{rows, 0} {
		b.Run(fmt.Sprintf("hint=%d", hint), func(b *testing.B) {
			x := NewOpenIndex(hint)
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done++ {
				if x.Len() == rows {
					if hint == 0 {
						x = NewOpenIndex(0) // keeps nothing: pays for growing each time
					} else {
						x.Reset(hint)
					}
				}
				x.Insert(have[x.Len()], uint32(x.Len()))
			}
		})
	}
}

// BenchmarkBuild is one bucket's filter, with a builder that is reused; one op is a build, ns/key is the cost
// of one event.
func BenchmarkBuild(b *testing.B) {
	for _, keys := range []int{10_000, 312_500, 1_000_000} {
		for _, kind := range filterKinds {
			b.Run(fmt.Sprintf("keys=%d/filter=%s", keys, kind), func(b *testing.B) {
				h := randomHashes(rand.New(rand.NewPCG(11, 12)), keys)
				var builder Builder
				f, err := builder.Build(kind, h) // gives the builder its memory
				if err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				for range b.N {
					if f, err = builder.Build(kind, h); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(keys), "ns/key")
				b.ReportMetric(f.BitsPerKey(), "bits/key")
			})
		}
	}
}

// BenchmarkLane adds one bucket to lanes of sixteen: one op is a build, the copy of the other lanes included.
func BenchmarkLane(b *testing.B) {
	for _, keys := range []int{10_000, 312_500} {
		for _, kind := range filterKinds {
			b.Run(fmt.Sprintf("keys=%d/filter=%s", keys, kind), func(b *testing.B) {
				s := benchSet(b, kind, benchSlots*keys, true)
				l, mask := s.Lanes()
				cover, keep := s.Cover(mask), mask&^(1<<3)
				rng := rand.New(rand.NewPCG(13, 14))
				var builder Builder
				var parts []Part
				for { // one in a hundred does not fit with this seed
					parts = []Part{{3, randomHashes(rng, keys)}}
					_, _, err := builder.AddLanes(l, keep, parts, cover) // gives the builder its memory
					if err == nil {
						break
					}
					if !errors.Is(err, ErrNoFit) {
						b.Fatal(err)
					}
				}
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					if _, _, err := builder.AddLanes(l, keep, parts, cover); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(keys), "ns/key")
				b.ReportMetric(8*float64(l.Bytes())/float64(benchSlots*keys), "bits/key")
			})
		}
	}
}
