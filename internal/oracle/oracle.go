// Package oracle says what the join of two record files must be, in the plainest way there is, so that the real join can
// be held against it. It follows the numbered rules of the product's semantics ("rule n" in the comments), shares no code
// with the packages that it judges, and prefers clarity to speed.
//
// What comes in: two whole NDJSON files (a and b), the format of their lines, and a Config. What happens, step by step:
//
//  1. Each line becomes a record with an envelope: partition, offset, record time, key, payload (envelope.go).
//  2. Each record meets exactly one fate, asked in the order of rule 9, on its own partition's history alone (fate.go).
//     The payload is read by a small JSON reader that keeps every value's text as written (jsontext.go).
//  3. The accepted events of both sides are grouped by typed key, and nested loops pair them: every B in the order in
//     which it asks, every A from the earliest (this file).
//  4. Expected says the output lines and counters, whether they are the only right ones, and checks the lines of a real
//     join (check.go).
//
// It covers inner joins with `probe: aligned`, files that are read to their end (a drain, rule 15), strict validation, and
// one state for all partitions. Aligned, every B sees all A in time whose window holds it (rules 10 and 12), so time
// enters the result through lateness alone (rule 8): watermarks need no simulation here.
//
// RandomWorkload (workload.go) makes small inputs that are nasty on purpose.
//
// Nothing here is safe for several goroutines at once. Results do not point into the input files.
package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Cardinalities, spelt as in the configuration (rule 2).
const (
	OneToOne   = "one-to-one"
	OneToMany  = "one-to-many"
	ManyToMany = "many-to-many"
)

// Field is one kept value: the name it has in the output and the path it comes from.
type Field struct{ Name, Path string }

// Side is the configuration of one input.
type Side struct {
	Key       []string // paths, or "@key" for the record key; the first that exists counts
	KeyString bool     // key_type: string, numbers become strings
	Time      string   // "@timestamp" or a path; "arrival" is refused, it has no expected result
	TimeUnit  string   // for a path: "ms" (also ""), "us", "ns", "s", "rfc3339"
	Keep      []Field  // in output order; none = the whole value
	StoreFull bool     // the state keeps the whole value whatever Keep is: an unmatched A comes out with all of it
}

// Config is what the join is asked to do. Durations are whole milliseconds, none negative.
type Config struct {
	A, B          Side
	Before, After time.Duration // the window, both ends inclusive: tA-Before <= tB <= tA+After
	Grace         time.Duration // disorder allowed inside one partition
	Cardinality   string        // OneToOne (also ""), OneToMany, ManyToMany
}

// Counters has the fates of one side's records. Read is their sum.
type Counters struct {
	Read, Accepted, NullKey, BadKey, Malformed, BadTime, Late, LateIdle, Redelivered int64
}

// Event is an accepted record.
type Event struct {
	Partition int32
	Offset    int64
	Line      int    // 1-based line in its file
	Time      int64  // event time, ms
	Key       Key    // typed join key
	Body      string // what the output prints for this side, one JSON text
	Stored    string // what the state keeps of it, one JSON text
}

// Pair is one match.
type Pair struct{ A, B *Event }

// Expected is the answer. Lines and Pairs are in the order in which the oracle found them; the order of a real join may
// differ, so compare multisets (Compare does).
type Expected struct {
	Lines     []string // output lines without their newline
	Pairs     []Pair   // Pairs[i] gave Lines[i]
	CountersA Counters
	CountersB Counters

	// Exact says that Lines is the only right multiset. It is false when B of different partitions compete for the same A
	// in a one-to-one join; then Lines is one of several right answers and CheckValid is the test (rule 2's exception).
	Exact bool

	cfg     Config
	groups  map[Key]*group
	refused [2][]refusal // records for the late and the dead output, by side
}

// group holds the accepted events of one key.
type group struct {
	as []*Event // by time, then partition, then offset: the order in which rule 2 prefers them
	bs []*Event // by partition, then as read: inside a partition the order in which they ask
}

// Expect computes the join of two files whose lines are in format "value", "kcat" or "rpk". An error means that the
// configuration or the format is not one the oracle knows; no content of the files is an error.
func Expect(cfg Config, aFile, bFile []byte, format string) (*Expected, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	e := &Expected{cfg: cfg, groups: map[Key]*group{}}
	as, ra, ca, err := acceptedEvents(cfg.A, cfg.Grace, aFile, format)
	if err != nil {
		return nil, fmt.Errorf("oracle: side a: %w", err)
	}
	bs, rb, cb, err := acceptedEvents(cfg.B, cfg.Grace, bFile, format)
	if err != nil {
		return nil, fmt.Errorf("oracle: side b: %w", err)
	}
	e.CountersA, e.CountersB = ca, cb
	e.refused = [2][]refusal{ra, rb}

	for _, a := range as {
		g := e.group(a.Key)
		g.as = append(g.as, a)
	}
	for _, b := range bs {
		g := e.group(b.Key)
		g.bs = append(g.bs, b)
	}
	e.Exact = true
	for _, g := range e.groups {
		slices.SortFunc(g.as, func(x, y *Event) int {
			return cmp.Or(cmp.Compare(x.Time, y.Time), cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Offset, y.Offset))
		})
		slices.SortStableFunc(g.bs, func(x, y *Event) int { return cmp.Compare(x.Partition, y.Partition) })
		if cfg.Cardinality == OneToOne && cfg.contested(g) {
			e.Exact = false
		}
	}
	e.join(bs)
	return e, nil
}

// complete fills defaults and refuses what the oracle cannot answer.
func (c *Config) complete() error {
	switch c.Cardinality {
	case "":
		c.Cardinality = OneToOne
	case OneToOne, OneToMany, ManyToMany:
	default:
		return fmt.Errorf("oracle: unknown cardinality %q", c.Cardinality)
	}
	for name, d := range map[string]time.Duration{"before": c.Before, "after": c.After, "grace": c.Grace} {
		if d < 0 || d%time.Millisecond != 0 {
			return fmt.Errorf("oracle: %s must be whole milliseconds from 0, not %v", name, d)
		}
	}
	return nil
}

func (e *Expected) group(k Key) *group {
	g := e.groups[k]
	if g == nil {
		g = &group{}
		e.groups[k] = g
	}
	return g
}

// inWindow is rule 1's formula, the same whoever came first.
func (c Config) inWindow(a, b *Event) bool {
	return a.Time-c.Before.Milliseconds() <= b.Time && b.Time <= a.Time+c.After.Milliseconds()
}

// join lets every B ask: partition by partition, inside each in the order of its offsets. That order of partitions is as
// good as any other, see Exact.
func (e *Expected) join(bs []*Event) {
	slices.SortStableFunc(bs, func(x, y *Event) int { return cmp.Compare(x.Partition, y.Partition) })
	consumed := map[*Event]bool{}
	for _, b := range bs {
		for _, a := range e.groups[b.Key].as {
			if consumed[a] || !e.cfg.inWindow(a, b) {
				continue
			}
			e.Pairs = append(e.Pairs, Pair{a, b})
			e.Lines = append(e.Lines, Line(a, b))
			if e.cfg.Cardinality == OneToOne {
				consumed[a] = true
			}
			if e.cfg.Cardinality != ManyToMany {
				break
			}
		}
	}
}

// contested says whether the outcome for this key can depend on the order in which B of different partitions ask. Events
// that a chain of possible pairs connects can influence each other, so the question is whether any such connected set
// holds B of two partitions.
func (c Config) contested(g *group) bool {
	if len(g.as) == 0 || len(g.bs) == 0 || g.bs[0].Partition == g.bs[len(g.bs)-1].Partition {
		return false
	}
	// label[i] is the connected set of B i, named by one of its members.
	label := make([]int, len(g.bs))
	for i := range label {
		label[i] = i
	}
	find := func(i int) int {
		for label[i] != i {
			i = label[i]
		}
		return i
	}
	for _, a := range g.as {
		first := -1
		for i, b := range g.bs {
			if !c.inWindow(a, b) {
				continue
			}
			if first < 0 {
				first = i
			}
			label[find(i)] = find(first)
		}
	}
	for i, b := range g.bs {
		if g.bs[find(i)].Partition != b.Partition {
			return true
		}
	}
	return false
}

// Line prints one pair as the output file has it, without newline.
func Line(a, b *Event) string {
	ts := strconv.FormatInt(max(a.Time, b.Time), 10)
	return `{"key":` + a.Key.JSON() + `,"ts":` + ts + `,"a":` + a.Body + `,"b":` + b.Body + `}`
}
