package buckets

import (
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"
)

// seedFlag replays a random test: go test ./buckets -run Model -seed 123.
var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 takes a new one")

// newRand returns the generator of a random test and says its seed.
func newRand(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// kit is one place for state, under one of the backends.
type kit interface {
	// open opens the store as it stands.
	open(t testing.TB) Backend
	// crash turns the place into what the end of the process at this very moment leaves behind. The store that
	// is open goes on with the old place and is closed afterwards.
	crash(t testing.TB)
	// flush makes the store write out what it holds in RAM, as it does by itself in a long run.
	flush(t testing.TB, meta, journal bool)
}

// kits has one maker for each backend of this build; RocksDB adds itself.
var kits = map[string]func(t testing.TB) kit{
	"mem": func(testing.TB) kit { return &memKit{NewMemBackend()} },
}

// eachKit runs a test over every backend.
func eachKit(t *testing.T, fn func(t *testing.T, k kit)) {
	for name, make := range kits {
		t.Run(name, func(t *testing.T) { fn(t, make(t)) })
	}
}

type memKit struct{ m *MemBackend }

func (k *memKit) open(testing.TB) Backend { return k.m }

func (k *memKit) flush(testing.TB, bool, bool) {}

func (k *memKit) crash(testing.TB) {
	k.m = &MemBackend{families: maps.Clone(k.m.families), meta: maps.Clone(k.m.meta), journal: maps.Clone(k.m.journal)}
}

// mustRing opens a ring and stops the test if that fails.
func mustRing(t testing.TB, opt Options, store Backend, committed uint64) *Ring {
	t.Helper()
	r, err := NewRing(opt, store, committed)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put appends an entry to the bucket of its time and returns the row.
func put(t testing.TB, r *Ring, hash uint64, e Entry) uint32 {
	t.Helper()
	b, err := r.Bucket(EpochOf(e.Time, r.Width()))
	must(t, err)
	row, err := r.Append(b, hash, &e)
	must(t, err)
	return row
}

// sealBucket seals a bucket on this goroutine.
func sealBucket(t testing.TB, r *Ring, epoch int64) {
	t.Helper()
	job := r.StartSeal(r.At(epoch))
	must(t, job.Run())
	drop, err := r.FinishSeal(job)
	must(t, err)
	if drop != nil {
		t.Fatalf("bucket %d was dropped", epoch)
	}
}

// commitRecord is what tests take for a commit record: the batch.
func commitRecord(batch uint64) []byte { return binary.LittleEndian.AppendUint64(nil, batch) }

// recorded is the batch of a store's commit record, 0 if there is none.
func recorded(t testing.TB, store Backend) uint64 {
	t.Helper()
	rec, err := CommitRecord(store)
	must(t, err)
	if rec == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(rec)
}

// found is one entry that a lookup returned.
type found struct {
	row   uint32
	entry string
}

// lookupAll reads every chunk of each hash in a sealed slot; the answers come in the order of the hashes. It checks
// that no chunk is over its limits and that each but the last says that more follow.
func lookupAll(r *Ring, probes []Probe) ([][]found, error) {
	out := make([][]found, len(probes))
	for i := range probes {
		probes[i].Tag = uint32(i)
	}
	for len(probes) > 0 {
		if err := r.Lookup(probes); err != nil {
			return nil, err
		}
		var more []Probe
		for i, p := range probes {
			value, n := r.Value(i), 0
			it := IterValue(value)
			for row, entry, ok := it.Next(); ok; row, entry, ok = it.Next() {
				if _, err := ParseEntry(entry); err != nil {
					return nil, err
				}
				out[p.Tag] = append(out[p.Tag], found{row, string(entry)})
				n++
			}
			if it.Err() != nil {
				return nil, it.Err()
			}
			if n > chunkEntries || n > 1 && len(value) > chunkBytes+maxTestEntry {
				return nil, fmt.Errorf("a value of %d entries and %d bytes", n, len(value))
			}
			if p.Chunk > 0 && n == 0 {
				return nil, fmt.Errorf("chunk %d of hash %x is missing", p.Chunk, p.Hash)
			}
			if HasMore(value) {
				p.Chunk++
				more = append(more, p)
			}
		}
		probes = more
	}
	return out, nil
}

// maxTestEntry is over the largest entry that tests make.
const maxTestEntry = 2 << 20

// filled returns n bytes that differ with x.
func filled(n int, x uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(x + uint64(i)*(2*x+1))
	}
	return b
}
