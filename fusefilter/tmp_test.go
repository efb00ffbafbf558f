package fusefilter

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

var filterKinds = []Kind{Fuse8, Fuse16, Fuse32}

func TestTmpKernels(t *testing.T) {
	rng := newRand(t)
	for _, kind := range filterKinds {
		for _, slots := range []int{1, 2, 5, 16, 33, 64} {
			keys := make([][]uint64, slots)
			s := NewSet(kind, slots)
			for i := range keys {
				keys[i] = distinctHashes(rng, 1+rng.IntN(3000))
				s.Install(i, mustBuild(t, &Builder{}, kind, append([]uint64(nil), keys[i]...)))
			}
			ask := distinctHashes(rng, 5000)
			for _, k := range keys {
				ask = append(ask, k...)
			}
			all := ^uint64(0) >> (64 - slots)
			a := make([]Hit, len(ask)+1)
			b := make([]Hit, len(ask)+1)
			l := lay(t, s, all, keys)
			n := probeLanes(l, all, ask, a)
			m := goProbeLanes(l, all, ask, b)
			if n != m || !reflect.DeepEqual(a[:n], b[:n]) {
				t.Fatalf("%s %d: %d %d", kind, slots, n, m)
			}
			masks := make([]uint64, len(ask))
			for i := range masks {
				masks[i] = all
			}
			probeMasks(s, ask, masks)
			i := 5000
			for slot, k := range keys {
				for range k {
					if masks[i]>>slot&1 == 0 {
						t.Fatal("false negative")
					}
					i++
				}
			}
		}
	}
	_ = rand.Int
}
