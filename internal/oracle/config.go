package oracle

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Cardinalities, spelt as in the configuration (rule 2).
const (
	OneToOne   = "one-to-one"
	OneToMany  = "one-to-many"
	ManyToMany = "many-to-many"
)

// Types of the join (rule 16).
const (
	Inner = "inner"
	Left  = "left"
	Right = "right"
	Outer = "outer"
)

// Ways to probe (rule 12).
const (
	Aligned   = "aligned"
	Wait      = "wait"
	Immediate = "immediate"
)

// Ways to collect (rule 19).
const (
	Eager   = "eager"
	Timeout = "timeout"
	Count   = "count"
	Marker  = "marker"
)

// What a B that ends its A gives (rule 18).
const (
	EmitPair      = "pair"
	EmitUnmatched = "unmatched"
	EmitNothing   = "nothing"
)

// JoinKey is the default of Config.OutputKey.
const JoinKey = "join-key"

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

// Collect says when the group of an A comes out (rule 19).
type Collect struct {
	Mode   string // Eager (also ""), Timeout, Count, Marker
	Path   string // Count: a path in A; Marker: a path in B
	Equals string // Marker: the value of the field, as text
}

// CompleteOn says which B ends its A (rule 18); none if Emit is "".
type CompleteOn struct {
	Field, Equals string // a path in B, and the value there, as text
	Emit          string // EmitPair, EmitUnmatched, EmitNothing
}

// Config is what the join is asked to do. Durations are whole milliseconds, none negative.
type Config struct {
	A, B          Side
	Before, After time.Duration // the window, both ends inclusive: tA-Before <= tB <= tA+After
	Grace         time.Duration // disorder allowed inside one partition
	Cardinality   string        // OneToOne (also ""), OneToMany, ManyToMany
	Type          string        // Inner (also ""), Left, Right, Outer
	Probe         string        // Aligned (also ""), Wait, Immediate
	Collect       Collect
	Early         time.Duration // null rows of A so long after their time; 0 = off
	Retract       bool
	CompleteOn    CompleteOn
	// OutputKey is the output name of the field that keys the records, JoinKey (also "") for the join key. Only tombstones
	// show it: with Retract it is a field of A.
	OutputKey string

	// NoDrain: the end of the files is no end (rule 15). Then it counts how far the files are read, which depends on
	// MaxSpread (0: the default of rule 13) and, at times, on the ring: Buckets of Width; with Buckets 0 it never holds.
	NoDrain   bool
	MaxSpread time.Duration
	Width     time.Duration
	Buckets   int
}

// complete fills defaults and refuses what the oracle cannot answer.
func (c *Config) complete() error {
	for _, w := range []struct {
		key   string
		value *string
		of    []string // the first is the default
	}{
		{"cardinality", &c.Cardinality, []string{OneToOne, OneToMany, ManyToMany}},
		{"type", &c.Type, []string{Inner, Left, Right, Outer}},
		{"probe", &c.Probe, []string{Aligned, Wait, Immediate}},
		{"collect", &c.Collect.Mode, []string{Eager, Timeout, Count, Marker}},
		{"emit", &c.CompleteOn.Emit, []string{"", EmitPair, EmitUnmatched, EmitNothing}},
	} {
		if *w.value == "" {
			*w.value = w.of[0]
		}
		if !slices.Contains(w.of, *w.value) {
			return fmt.Errorf("oracle: unknown %s %q", w.key, *w.value)
		}
	}
	for name, d := range map[string]time.Duration{"before": c.Before, "after": c.After, "grace": c.Grace, "early": c.Early,
		"max_spread": c.MaxSpread, "width": c.Width} {
		if d < 0 || d%time.Millisecond != 0 {
			return fmt.Errorf("oracle: %s must be whole milliseconds from 0, not %v", name, d)
		}
	}
	if c.OutputKey == "" {
		c.OutputKey = JoinKey
	}
	if c.MaxSpread == 0 {
		c.MaxSpread = max(10*time.Minute, 2*(c.Before+c.Grace))
	}
	return c.together()
}

// together refuses what the rules do not allow together.
func (c *Config) together() error {
	asks := c.Early > 0 || c.collects() || c.CompleteOn.Emit != ""
	switch {
	case asks && c.Probe != Aligned:
		return errors.New("oracle: early, complete_on and collect need probe aligned (rule 12)")
	case c.collects() && c.Cardinality != OneToMany:
		return errors.New("oracle: collect needs one-to-many (rule 19)")
	case c.Early > 0 && !c.nulls('a'):
		return errors.New("oracle: early needs type left or outer (rule 17)")
	case c.Early > 0 && c.Early >= c.After:
		return errors.New("oracle: early must be less than after (rule 17)")
	case c.Retract && c.Early == 0:
		return errors.New("oracle: retract needs early (rule 17)")
	case c.Retract && c.OutputKey != JoinKey && !slices.ContainsFunc(c.A.Keep, func(f Field) bool { return f.Name == c.OutputKey }):
		return errors.New("oracle: retract needs an output key that a keeps, or the join key")
	case c.Buckets > 0 && c.Width == 0:
		return errors.New("oracle: a ring of buckets needs their width")
	}
	return nil
}

// nulls says whether events of a side, 'a' or 'b', that find no partner are results (rule 16).
func (c *Config) nulls(side byte) bool {
	return c.Type == Outer || side == 'a' && c.Type == Left || side == 'b' && c.Type == Right
}

func (c *Config) collects() bool { return c.Collect.Mode != Eager }

// inWindow is rule 1's formula, the same whoever came first.
func (c *Config) inWindow(a, b *Event) bool {
	return a.Time-c.Before.Milliseconds() <= b.Time && b.Time <= a.Time+c.After.Milliseconds()
}

// tooLate says whether a first B is one for which the null row of an A does not wait (rule 17).
func (c *Config) tooLate(a, b *Event) bool {
	return c.Early > 0 && b.Time > a.Time+c.Early.Milliseconds()
}

// fills says whether this B, the nth of a group, completes it (rule 19).
func (c *Config) fills(a, b *Event, nth int) bool {
	return c.Collect.Mode == Count && nth == a.Wanted || c.Collect.Mode == Marker && b.Marks
}
