package baseline

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// The variants of a map that people write, measured before one was chosen (doc.go has the figures):
//
//	go test ./baseline -run '^$' -bench Variant -benchtime 3x
//
// One operation is a million B of which one in a hundred has its A among the rows that wait; what is reported besides is
// the time of one B, that of one A, and the memory of one A.

const (
	variantRows  = 1_000_000
	variantAsked = 1_000_000
	variantBody  = 1024
)

type bigEvent struct {
	time int64
	raw  []byte
	_    *bigEvent // the next of its key
}

// variant stores an A and says whether a B has one.
type variant interface {
	store(key []byte, time int64, body []byte)
	ask(key []byte) bool
}

type byPointer map[string]*bigEvent

func (m byPointer) store(key []byte, time int64, body []byte) {
	m[string(key)] = &bigEvent{time: time, raw: append([]byte(nil), body...)}
}
func (m byPointer) ask(key []byte) bool { return m[string(key)] != nil }

type byValue map[string]bigEvent

func (m byValue) store(key []byte, time int64, body []byte) {
	m[string(key)] = bigEvent{time: time, raw: append([]byte(nil), body...)}
}
func (m byValue) ask(key []byte) bool { return m[string(key)].raw != nil }

type byBytes map[string][]byte

func (m byBytes) store(key []byte, _ int64, body []byte) {
	m[string(key)] = append([]byte(nil), body...)
}
func (m byBytes) ask(key []byte) bool { return m[string(key)] != nil }

type bySlice map[string][]*bigEvent

func (m bySlice) store(key []byte, time int64, body []byte) {
	m[string(key)] = append(m[string(key)], &bigEvent{time: time, raw: append([]byte(nil), body...)})
}
func (m bySlice) ask(key []byte) bool { return len(m[string(key)]) > 0 }

// byBucket has a map for each bucket of time: expiry is dropping a map, and a B asks all of them.
type byBucket [16]map[string]*bigEvent

func (m *byBucket) store(key []byte, time int64, body []byte) {
	i := time % int64(len(m))
	if m[i] == nil {
		m[i] = map[string]*bigEvent{}
	}
	m[i][string(key)] = &bigEvent{time: time, raw: append([]byte(nil), body...)}
}
func (m *byBucket) ask(key []byte) bool {
	for _, one := range m {
		if one[string(key)] != nil {
			return true
		}
	}
	return false
}

func BenchmarkVariant(b *testing.B) {
	for name, make := range map[string]func() variant{
		"pointer": func() variant { return byPointer{} }, "value": func() variant { return byValue{} },
		"bytes": func() variant { return byBytes{} }, "slice": func() variant { return bySlice{} },
		"bucket": func() variant { return &byBucket{} },
	} {
		b.Run(name, func(b *testing.B) { benchVariant(b, make()) })
	}
}

func benchVariant(b *testing.B, v variant) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	body := make([]byte, variantBody)
	start := time.Now()
	for i := range variantRows {
		v.store(fmt.Appendf(nil, "sPAY-%016x", i), int64(i), body)
	}
	stored := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	keys := make([][]byte, variantAsked)
	r := rand.New(rand.NewPCG(1, 2))
	want := 0
	for i := range keys {
		n := variantRows + i
		if i%100 == 0 {
			n = r.IntN(variantRows)
			want++
		}
		keys[i] = fmt.Appendf(nil, "sPAY-%016x", n)
	}
	var took time.Duration
	rounds := 0
	for b.Loop() {
		start, found := time.Now(), 0
		for _, k := range keys {
			if v.ask(k) {
				found++
			}
		}
		took += time.Since(start)
		rounds++
		if found != want {
			b.Fatalf("%d found, want %d", found, want)
		}
	}
	b.ReportMetric(float64(took)/float64(rounds)/variantAsked, "ns/B")
	b.ReportMetric(float64(stored)/variantRows, "ns/A")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/variantRows, "B/A")
}
