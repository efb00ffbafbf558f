package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

// randomBatch has changes of any size up to a few frames, none too.
func randomBatch(rng *rand.Rand, n uint64, size int) *Batch {
	some := func() []byte {
		b := make([]byte, rng.IntN(3*size))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		if len(b) == 0 {
			return nil
		}
		return b
	}
	b := &Batch{N: n, Tasks: 1 + rng.IntN(5), Record: some()}
	for range rng.IntN(4) {
		b.Changes = append(b.Changes, Change{Task: rng.IntN(5), Space: "\x00wc"[rng.IntN(3)], Journal: some()})
	}
	return b
}

func framesOf(b *Batch, life uint64, size int) (values [][]byte) {
	writeBatch(b, life, size, func(v []byte) { values = append(values, v) })
	return values
}

// TestFramesGiveTheBatchesBack: whatever the sizes, and whatever unfinished batches and frames of other lives lie between.
func TestFramesGiveTheBatchesBack(t *testing.T) {
	const size = 100
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var a assembler
		offset := int64(rng.IntN(100))
		var want, got []*Batch
		add := func(value []byte) {
			if len(value) > size {
				t.Fatalf("seed %d: a frame of %d bytes, at most %d", seed, len(value), size)
			}
			b, err := a.add(offset, value)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if b != nil {
				got = append(got, b)
			}
			offset++
		}
		for n := uint64(1); n < 10; n++ {
			b := randomBatch(rng, n, size)
			strays := framesOf(randomBatch(rng, n, size), 2, size)
			if rng.IntN(3) == 0 { // a first attempt that was not finished
				half := framesOf(randomBatch(rng, n, size), 1, size)
				for _, v := range half[:len(half)-1] {
					add(v)
				}
			}
			for i, v := range framesOf(b, 1, size) {
				if i == 0 {
					b.Before = offset
				}
				add(v)
				if rng.IntN(2) == 0 && len(strays) > 1 { // and one of a process that is gone
					add(strays[0])
					strays = strays[1:]
				}
			}
			want = append(want, b)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %d batches came back of %d, or not as they were", seed, len(got), len(want))
		}
	}
}

// TestDamageIsAnError: one flipped bit anywhere in a batch, and it does not come back.
func TestDamageIsAnError(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	b := randomBatch(rng, 7, 100)
	for len(b.Changes) < 2 {
		b = randomBatch(rng, 7, 100)
	}
	values := framesOf(b, 1, 100)
	for i, v := range values {
		for bit := range len(v) * 8 {
			var a assembler
			var whole *Batch
			var err error
			for k, v := range values {
				if k == i {
					v = bytes.Clone(v)
					v[bit/8] ^= 1 << (bit % 8)
				}
				var got *Batch
				if got, err = a.add(int64(k), v); err != nil {
					break
				}
				if got != nil {
					whole = got
				}
			}
			if err != nil && !errors.Is(err, ErrFrame) {
				t.Fatalf("frame %d, bit %d: %v is no ErrFrame", i, bit, err)
			}
			if whole != nil {
				t.Fatalf("frame %d, bit %d: the batch came back", i, bit)
			}
		}
	}
}

// FuzzFrames: no bytes make the assembler fall over, and what is one batch's frames comes back as that batch.
func FuzzFrames(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 1))
	for n := range uint64(5) {
		b := randomBatch(rng, n, 60)
		f.Add(bytes.Join(framesOf(b, 1, 60), nil), 60)
	}
	f.Add([]byte{}, 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		if size < 1 {
			size = 1
		}
		var a assembler
		for at := 0; at < len(data); at += size {
			b, err := a.add(int64(at), data[at:min(at+size, len(data))])
			if err != nil && !errors.Is(err, ErrFrame) {
				t.Fatal(err)
			}
			if b == nil {
				continue
			}
			var again assembler
			var back *Batch
			for i, v := range framesOf(b, 9, frameBytes) {
				if back, err = again.add(b.Before+int64(i), v); err != nil {
					t.Fatal(err)
				}
			}
			if !reflect.DeepEqual(back, b) {
				t.Fatalf("%+v came back as %+v", b, back)
			}
		}
	})
}

// readAll reads a changelog from an offset or its start.
func readAll(t *testing.T, c *Changelog, from int64) []*Batch {
	t.Helper()
	ctx := testContext(t)
	start, end, err := c.Bounds(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []*Batch
	if err := c.Read(ctx, max(start, from), end, nil, func(b *Batch) error { all = append(all, b); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestChangelogRoundTrip: what transactions committed comes back, what was aborted does not, also as the last thing in the
// partition; without transactions a batch without its end does not.
func TestChangelogRoundTrip(t *testing.T) {
	for _, id := range []string{"unit", ""} {
		t.Run("id="+id, func(t *testing.T) {
			_, o := fakeKafka(t)
			ctx := testContext(t)
			rng := rand.New(rand.NewPCG(5, 1))
			var want []*Batch
			log := NewChangelog(o, "log", 0)
			var p *Producer
			for n := uint64(1); n <= 12; n++ {
				if p == nil {
					p = txnProducer(t, o, id)
				}
				if err := p.Begin(); err != nil {
					t.Fatal(err)
				}
				b := randomBatch(rng, n, frameBytes/2)
				b.Before = log.End()
				if id == "" && n%4 == 0 {
					values := framesOf(b, p.life, frameBytes)
					for _, v := range values[:len(values)-1] {
						p.Produce(ctx, &Record{Topic: "log", Value: v})
					}
				} else {
					log.Write(ctx, p, b)
				}
				if err := p.Flush(ctx); err != nil {
					t.Fatal(err)
				}
				if n%4 == 0 {
					p.Close(ctx)
					p = nil
					if got := readAll(t, log, 0); len(got) != len(want) {
						t.Fatalf("after an aborted batch %d come back, want %d", len(got), len(want))
					}
					continue
				}
				if id != "" {
					if err := p.End(ctx); err != nil {
						t.Fatal(err)
					}
				}
				log.Written(p)
				want = append(want, b)
			}
			got := readAll(t, log, 0)
			if len(got) != len(want) {
				t.Fatalf("%d batches came back, want %d", len(got), len(want))
			}
			for i, b := range want {
				if got[i].Before < b.Before || i > 0 && got[i].Before <= got[i-1].Before {
					t.Errorf("batch %d begins at %d, and the end before it was %d", b.N, got[i].Before, b.Before)
				}
				b.Before = got[i].Before
			}
			if !reflect.DeepEqual(got, want) {
				t.Error("batches are not as they were")
			}
			// From the offset before batch n on, batch n is the first.
			for i, b := range got {
				if tail := readAll(t, log, b.Before); len(tail) != len(got)-i || tail[0].N != b.N {
					t.Errorf("from offset %d on %d batches, want %d", b.Before, len(tail), len(got)-i)
				}
			}
			if err := log.Trim(ctx, got[3].Before); err != nil {
				t.Fatal(err)
			}
			if tail := readAll(t, log, 0); len(tail) != len(got)-3 || tail[0].N != got[3].N {
				t.Errorf("%d batches are left after the cut, want %d", len(tail), len(got)-3)
			}
		})
	}
}

// TestOpenTransactionIsWaitedFor: somebody else's transaction is open in the changelog: nobody knows how it ends, so reading waits.
func TestOpenTransactionIsWaitedFor(t *testing.T) {
	_, o := fakeKafka(t)
	ctx := testContext(t)
	log := NewChangelog(o, "log", 0)
	other := txnProducer(t, o, "somebody else")
	if err := other.Begin(); err != nil {
		t.Fatal(err)
	}
	log.Write(ctx, other, &Batch{N: 1, Record: []byte("record")})
	if err := other.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	waited := 0
	start, end, err := log.Bounds(ctx, func(int64) {
		waited++
		if err := other.End(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	if err != nil || waited == 0 || start != 0 || end < 1 {
		t.Fatalf("bounds %d to %d after %d waits, %v", start, end, waited, err)
	}
	if got := readAll(t, log, 0); len(got) != 1 {
		t.Errorf("%d batches, want the one that was waited for", len(got))
	}
}

// TestDescribe: what the cluster says about topics, also of those that are made with settings.
func TestDescribe(t *testing.T) {
	_, o := fakeKafka(t)
	ctx := testContext(t)
	settings := map[string]string{"retention.ms": "-1", "max.message.bytes": "123456"}
	for range 2 { // the second time it is there
		if err := CreateTopic(ctx, o, "made", 2, settings); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Describe(ctx, o, "made", "out", "nowhere")
	if err != nil {
		t.Fatal(err)
	}
	made := c.Topics["made"]
	if made.Partitions != 2 || made.MaxBytes != 123456 || made.Settings["retention.ms"] != "-1" || made.ID == "" || c.ID == "" {
		t.Errorf("made: %+v", made)
	}
	if out := c.Topics["out"]; out.Partitions != 3 || out.MaxBytes != 1048588 {
		t.Errorf("out: %+v", out)
	}
	if len(c.Topics) != 2 {
		t.Errorf("topics: %v", fmt.Sprint(c.Topics))
	}
}
