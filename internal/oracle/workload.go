package oracle

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// RandomWorkload draws a small join (10 to 400 records a side) that is nasty on purpose: few keys or many, equal times,
// windows and grace of every size, disorder inside grace and beyond it, jumps in time, several partitions in any
// interleaving, redelivered offsets, and records of every fate. About a third of the B have a partner.
//
// In most workloads a partitioner keeps the B of one key in one partition, so that the answer is exact; in the others B
// compete across partitions. Every record has a unique id that each side keeps (or keeps as part of the whole value), as
// CheckValid wants. Every record has fields for the rules that look at one (workload_rules.go). Only what the rules decide without doubt is drawn. The format is "value", "kcat" or "rpk", for both
// files. The same rng state gives the same workload.
func RandomWorkload(rng *rand.Rand) (cfg Config, aFile, bFile []byte, format string) {
	w := &workload{rng: rng}
	w.drawShape()
	w.drawConfig()
	as, bs := w.drawEvents()
	aFile = w.file("a", w.cfg.A, as)
	bFile = w.file("b", w.cfg.B, bs)
	return w.cfg, aFile, bFile, w.format
}

// NewRand is the random source that tests use for a printed seed.
func NewRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6a6f696e)) }

// workload is one draw in the making.
type workload struct {
	rng    *rand.Rand
	cfg    Config
	format string

	tick       int64 // ms, all times are multiples of it
	nA, nB     int
	keys       []Key
	rotate     bool    // keys come into use one after another, so partitions begin and end at different times
	noise      float64 // chance of each kind of damage, per record
	late       float64 // chance of a record behind grace
	matching   float64 // share of B that are made from an A
	jumps      float64 // chance of a jump in time, per A
	spaces     bool    // insignificant whitespace in payloads
	crlf       bool
	ends       float64 // chance of a B that may end its A, or of one that completes a group
	repeats    float64 // chance that a partition is read again from a few records before, per record
	scattered  map[string]bool
	partitions map[string][]int32
}

// draft is a record before it is written.
type draft struct {
	id      string
	key     Key
	time    int64 // event time
	written int64 // when it reaches its partition: time plus disorder
}

func (w *workload) chance(p float64) bool { return w.rng.Float64() < p }

func pick[T any](w *workload, of ...T) T { return of[w.rng.IntN(len(of))] }

func (w *workload) drawShape() {
	w.format = pick(w, "value", "kcat", "kcat", "rpk", "rpk")
	w.tick = pick[int64](w, 1, 1, 10, 1000)
	w.nA = pick(w, 10+w.rng.IntN(20), 10+w.rng.IntN(391), 100+w.rng.IntN(301))
	w.nB = pick(w, 10+w.rng.IntN(20), 10+w.rng.IntN(391), 100+w.rng.IntN(301))
	w.keys = w.drawKeys(pick(w, 1, 2+w.rng.IntN(4), 5+w.rng.IntN(40), w.nA, 2*w.nA))
	w.rotate = w.chance(0.3)
	w.noise = pick(w, 0, 0.01, 0.04)
	w.late = pick(w, 0, 0.02, 0.1)
	w.matching = 0.3 + 0.6*w.rng.Float64()
	w.jumps = pick(w, 0, 0, 0.005, 0.02)
	w.spaces = w.chance(0.3)
	w.crlf = w.chance(0.05)
	w.repeats = pick(w, 0, 0.01, 0.05)
	w.ends = pick(w, 0.05, 0.2, 0.5)
	w.drawPartitions()
}

// drawPartitions: one partition for plain values, else up to 4 a side, mostly equal on both, their numbers not always
// without gaps.
func (w *workload) drawPartitions() {
	w.scattered = map[string]bool{"a": w.chance(0.3), "b": w.chance(0.35)}
	w.partitions = map[string][]int32{"a": {0}, "b": {0}}
	if w.format == "value" {
		return
	}
	draw := func() []int32 {
		all := pick(w, []int32{0, 1, 2, 3}, []int32{0, 1, 2, 3}, []int32{3, 7, 12, 100})
		return all[:1+w.rng.IntN(len(all))]
	}
	w.partitions["a"] = draw()
	w.partitions["b"] = w.partitions["a"]
	if w.chance(0.3) {
		w.partitions["b"] = draw()
	}
}

func (w *workload) drawConfig() {
	ms := func(ticks ...int64) time.Duration {
		return time.Duration(pick(w, ticks...)*w.tick) * time.Millisecond
	}
	w.cfg.Before = ms(0, 0, 1, 5, 100)
	w.cfg.After = ms(1, 5, 50, 50, 1000)
	if w.chance(0.1) {
		w.cfg.After = 0
	}
	w.cfg.Grace = ms(0, 1, 5, 20, 200)
	w.cfg.Cardinality = pick(w, OneToOne, OneToOne, OneToOne, OneToMany, OneToMany)
	w.cfg.A = w.drawSide("order")
	w.cfg.B = w.drawSide("payment")
}

func (w *workload) drawSide(what string) Side {
	s := Side{Time: "@timestamp", KeyString: w.chance(0.1)}
	paths := []string{"$.k", "$.k", `$.ref.id`, `$["odd.name"]`, `$.list[1]`}
	s.Key = []string{pick(w, paths...)}
	if w.chance(0.2) {
		s.Key = []string{"$.k", "$.alt"}
	}
	if w.format != "value" && w.chance(0.4) {
		s.Key = pick(w, []string{"@key"}, []string{"@key"}, []string{"$.k", "@key"}, []string{"@key", "$.k"})
	}
	if w.format == "value" || w.chance(0.4) {
		s.Time = pick(w, "$.ts", "$.ts", "$.meta.at")
		s.TimeUnit = pick(w, "ms", "ms", "us", "ns", "rfc3339")
		if w.tick == 1000 && w.chance(0.5) {
			s.TimeUnit = "s"
		}
	}
	if w.chance(0.1) {
		return s // the whole value
	}
	s.Keep = []Field{{what + "_id", "$.id"}}
	for _, f := range []Field{{"v", "$.v"}, {"x", "$.w.x"}, {"first", "$.tags[0]"}, {"k", "$.k"}, {"odd.name", `$["odd.name"]`}, {"none", "$.none.at.all"}} {
		if w.chance(0.4) {
			s.Keep = append(s.Keep, f)
		}
	}
	w.rng.Shuffle(len(s.Keep), func(i, j int) { s.Keep[i], s.Keep[j] = s.Keep[j], s.Keep[i] })
	return s
}

// drawKeys makes n different keys: mostly plain, some that invite mistakes, some twice, as a number and as a string.
func (w *workload) drawKeys(n int) []Key {
	seen := map[Key]bool{}
	var keys []Key
	add := func(k Key) {
		if !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	for i := 0; len(keys) < n; i++ {
		plain := "PAY-" + strconv.Itoa(i)
		switch w.rng.IntN(8) {
		case 0:
			add(Key{Text: pick(w, nastyKeys...)})
		case 1:
			add(Key{Text: plain + longTail(w.rng)})
		case 2:
			number := pick(w, nastyNumbers...)
			add(Key{Text: number})
			add(Key{Text: number, Number: true})
		case 3:
			add(Key{Text: strconv.Itoa(i), Number: true})
		default:
			add(Key{Text: plain})
		}
	}
	w.rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

var nastyKeys = []string{
	"", " ", "k", "k1", "K1", "null", "true", `"`, `\`, `a"b\c/d`, "tab\there", "line\nbreak", "\x00", "\x01\x1f\x7f", "<&>",
	"ключ", "鍵", "😀", "é", "e\u0301", "\u2028", "\ufeff", "{}", `{"k":1}`, "@key", "s5", "n5", "1234567", "12345678", "123456789",
}

var nastyNumbers = []string{"0", "5", "5.0", "5e0", "-5", "9007199254740993", "9007199254740992", "1e400", "0.1", "18446744073709551616"}

// longTail makes a key's length odd: around the block sizes of hashes, or long.
func longTail(rng *rand.Rand) string {
	tail := make([]byte, []int{1, 7, 10, 12, 27, 59, 123, 235, 1017, 1 + rng.IntN(3000)}[rng.IntN(10)])
	for i := range tail {
		tail[i] = byte('a' + rng.IntN(26))
	}
	return string(tail)
}

// drawEvents draws the story of both sides: A along a clock, B mostly at a time that some A's window holds.
func (w *workload) drawEvents() (as, bs []draft) {
	clock := int64(1_700_000_000_000) + 1000*w.rng.Int64N(1_000_000)
	pace := pick[int64](w, 1, 3, 20, 200) // mean step in ticks
	for i := range w.nA {
		if w.chance(0.6) {
			clock += w.tick * w.rng.Int64N(2*pace)
		}
		if w.chance(w.jumps) {
			clock += pick[int64](w, 60_000, 3_600_000, 86_400_000, 40*86_400_000)
		}
		as = append(as, w.draft("a-", i, w.drawKey(i, w.nA), clock))
	}
	before, after := w.cfg.Before.Milliseconds(), w.cfg.After.Milliseconds()
	for i := range w.nB {
		a := as[w.rng.IntN(len(as))]
		span := before + after + w.tick
		inside := a.time - before + w.rng.Int64N(span/w.tick)*w.tick
		b := w.draft("b-", i, a.key, pick(w, a.time-before, a.time, a.time+after, inside, inside, inside))
		if !w.chance(w.matching) {
			b = w.draft("b-", i, pick(w, a.key, w.drawKey(i, w.nB), Key{Text: "nobody-" + strconv.Itoa(i)}, Key{Text: "nobody"}),
				pick(w, a.time-before-w.tick, a.time+after+w.tick, a.time+w.tick*(w.rng.Int64N(4*pace)-2*pace)))
		}
		bs = append(bs, b)
	}
	return as, bs
}

// drawKey draws the key of the i-th of n records.
func (w *workload) drawKey(i, n int) Key {
	if w.rotate {
		current := i * len(w.keys) / n
		return w.keys[(current+w.rng.IntN(3))%len(w.keys)]
	}
	return w.keys[w.rng.IntN(len(w.keys))]
}

// draft adds disorder. A record that is written at most grace after its time is never late, whatever came before it, and
// at exactly grace it may meet lateness at equality; some are written later than that.
func (w *workload) draft(prefix string, i int, key Key, t int64) draft {
	grace := w.cfg.Grace.Milliseconds()
	disorder := pick(w, 0, 0, grace, w.rng.Int64N(grace/w.tick+1)*w.tick)
	if w.chance(w.late) {
		disorder = grace + w.tick*(1+w.rng.Int64N(50))
	}
	return draft{id: prefix + strconv.Itoa(i), key: key, time: t, written: t + disorder}
}

// partitioned deals the records of a side to its partitions, each in the order of writing.
func (w *workload) partitioned(side string, drafts []draft) map[int32][]draft {
	numbers := w.partitions[side]
	logs := map[int32][]draft{}
	for _, d := range drafts {
		h := fnv.New32a()
		h.Write([]byte(d.key.Text)) // a number and the string of its text are one key under key_type string: keep them together
		p := numbers[int(h.Sum32()%uint32(len(numbers)))]
		if w.scattered[side] {
			p = pick(w, numbers...)
		}
		logs[p] = append(logs[p], d)
	}
	for _, p := range numbers {
		w.rng.Shuffle(len(logs[p]), func(i, j int) { logs[p][i], logs[p][j] = logs[p][j], logs[p][i] })
		slices.SortStableFunc(logs[p], func(x, y draft) int { return cmp.Compare(x.written, y.written) })
	}
	return logs
}
