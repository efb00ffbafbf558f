package config

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Profile is a run profile: the join under "join:", the generator's settings under "load:".
type Profile struct {
	Join *Join
	Load Load

	from origins // of Load; Join has its own
}

// Load describes the generated streams. Records carry event time; how fast they are read is another matter.
type Load struct {
	Pending     int64           // A that wait when measuring starts
	ARate       float64         // A events for each second of event time; 0 = auto: Pending A fill the window
	BEvents     int64           // B events measured
	BRate       float64         // B events for each second of event time; 0 = auto: the generator's own choice
	Steady      bool            // A that would have been joined before the first B are left out (see loadgen.Config)
	Warm        int64           // B events before those
	Zipf        float64         // exponent of the distribution of absent and repeated keys; 0 = uniform
	MatchRate   float64         // share of B that have a partner, 0 to 1
	Duplicates  float64         // share of B with the key of an earlier matched B, 0 to 1
	LateShare   float64         // share of each side's records that are late on purpose, 0 to 1
	Disorder    time.Duration   // how far records of a partition may be out of order
	RecordBytes int             // size of a record's value
	KeyBytes    int             // size of a join key; 0 = auto: the usual one of the keys' shape
	Partitions  int             // of each side
	Ages        []time.Duration // tB − tA of matches, mixed in equal parts, below 0 for B before their A; empty = the generator's own choice

	// What keys have beside one A and one B, and what joins that are told to look at it find in the records
	// (loadgen.Family).
	BPerA       int     // B with the key of one A, in its window
	APerKey     int     // A with one key; more than 1 for many-to-many
	EndShare    float64 // share of B with $.status declined, for complete_on
	MarkShare   float64 // share of B with $.status settled, for collect: {marker: …}
	WrongCounts float64 // share of A whose $.line_count, for collect: {count: …}, is not b_per_a

	Batch int // records handed over at once
	Seed  uint64

	RequireSteady bool // a run whose measured phase was not steady is invalid
	// SwapAfter is after how many batches what helpers do is taken in, exactly, so that counts are the same in every run;
	// 0 = as soon as it is there.
	SwapAfter int
	// TimedEvents is how many B are measured in a run of which nothing but times is asked (`joinbench ab` behind its first pair), 0 = all.
	// It needs SwapAfter: counts are then those of one whole run.
	TimedEvents int64
	Thresholds  []string // limits of the record's metrics; read by package results
	Limits      []string // how much worse than a baseline a metric may be; read by package compare
}

// DefaultLoad is the reference case made small: a million A wait, 1 % of the B have a partner.
func DefaultLoad() Load {
	return Load{
		Pending: 1e6, BEvents: 10e6, MatchRate: 0.01, RecordBytes: 256, Partitions: 1, Batch: 4096, Seed: 1,
		BPerA: 1, APerKey: 1,
	}
}

// DefaultProfile is what ParseProfile starts from: Default with one task, so that figures compare, and
// DefaultLoad. The caller owns it.
func DefaultProfile() *Profile {
	p := &Profile{Join: Default(), Load: DefaultLoad()}
	p.Join.State.Tasks = 1
	p.Join.from.under = "join."
	return p
}

func loadLeaves(l *Load) []leaf {
	return []leaf{
		countLeaf("load.pending", &l.Pending, 0, maxCount),
		orAuto(rateLeaf("load.a_rate", &l.ARate), &l.ARate),
		countLeaf("load.b_events", &l.BEvents, 1, maxCount),
		orAuto(rateLeaf("load.b_rate", &l.BRate), &l.BRate),
		boolLeaf("load.steady", &l.Steady),
		countLeaf("load.warm", &l.Warm, 0, maxCount),
		boolLeaf("load.require_steady", &l.RequireSteady),
		smallCountLeaf("load.swap_after", &l.SwapAfter, 0, 1<<20),
		countLeaf("load.timed_events", &l.TimedEvents, 0, maxCount),
		ratioLeaf("load.match_rate", &l.MatchRate),
		ratioLeaf("load.duplicates", &l.Duplicates),
		ratioLeaf("load.late_share", &l.LateShare),
		keysLeaf("load.keys", &l.Zipf),
		durationLeaf("load.disorder", &l.Disorder, 0),
		bytesLeaf("load.record_bytes", &l.RecordBytes, 64<<20),
		orAuto(bytesLeaf("load.key_bytes", &l.KeyBytes, 64<<10), &l.KeyBytes),
		intLeaf("load.partitions", &l.Partitions, 1, 65536),
		agesLeaf("load.ages", &l.Ages),
		intLeaf("load.b_per_a", &l.BPerA, 1, 64),
		intLeaf("load.a_per_key", &l.APerKey, 1, 64),
		ratioLeaf("load.end_share", &l.EndShare),
		ratioLeaf("load.mark_share", &l.MarkShare),
		ratioLeaf("load.wrong_counts", &l.WrongCounts),
		smallCountLeaf("load.batch", &l.Batch, 1, 1<<20),
		scalarLeaf("load.seed", &l.Seed, func(s string) (uint64, error) {
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%q is not a seed (a whole number from 0 to 18446744073709551615)", s)
			}
			return n, nil
		}, func(n uint64) string { return strconv.FormatUint(n, 10) }),
		thresholdsLeaf("load.thresholds", &l.Thresholds),
		thresholdsLeaf("load.limits", &l.Limits),
	}
}

// thresholdsLeaf is a list that may be empty. What its expressions mean is not known here.
func thresholdsLeaf(key string, p *[]string) leaf {
	l := listLeaf(key, p)
	l.check = func() error {
		if slices.Contains(*p, "") {
			return fmt.Errorf("%s: an empty expression in the list", key)
		}
		return nil
	}
	return l
}

func rateLeaf(key string, p *float64) leaf {
	l := scalarLeaf(key, p, parseRate, formatRate)
	l.check = between(key, p, 0, 1e12, formatRate)
	return l
}

func ratioLeaf(key string, p *float64) leaf {
	l := scalarLeaf(key, p, parseRatio, formatRatio)
	l.check = between(key, p, 0, 1, formatRatio)
	return l
}

func smallCountLeaf(key string, p *int, lo, hi int) leaf {
	l := scalarLeaf(key, p, func(s string) (int, error) {
		n, err := parseCount(s)
		return int(n), err
	}, strconv.Itoa)
	l.check = between(key, p, lo, hi, strconv.Itoa)
	return l
}

// bytesLeaf takes a bare number too: the key names its unit.
func bytesLeaf(key string, p *int, hi int) leaf {
	l := scalarLeaf(key, p, func(s string) (int, error) {
		if n, err := strconv.Atoi(s); err == nil {
			return n, nil
		}
		n, err := parseSize(s)
		return int(n), err
	}, strconv.Itoa)
	l.check = between(key, p, 1, hi, strconv.Itoa)
	return l
}

// keysLeaf takes a distribution: uniform, which is 0, or zipf:0.99.
func keysLeaf(key string, p *float64) leaf {
	const most = 4
	return scalarLeaf(key, p, func(s string) (float64, error) {
		if s == "uniform" {
			return 0, nil
		}
		if text, ok := strings.CutPrefix(s, "zipf:"); ok {
			if v, err := strconv.ParseFloat(text, 64); err == nil && v > 0 && v <= most {
				return v, nil
			}
		}
		return 0, fmt.Errorf("%q is not a distribution of keys (uniform, or zipf: and an exponent above 0 and up to %d, for example zipf:0.99)", s, most)
	}, func(v float64) string {
		if v == 0 {
			return "uniform"
		}
		return "zipf:" + strconv.FormatFloat(v, 'g', -1, 64)
	})
}

func agesLeaf(key string, p *[]time.Duration) leaf {
	return leaf{
		key: key, structured: true, comma: true,
		get: func() string {
			parts := make([]string, len(*p))
			for i, d := range *p {
				parts[i] = formatDuration(d)
			}
			return "[" + strings.Join(parts, ", ") + "]"
		},
		set: func(n node) error {
			list, err := stringList(key, n)
			if err != nil {
				return err
			}
			ages := make([]time.Duration, len(list))
			for i, s := range list {
				if ages[i], err = parseDuration(s); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
			}
			*p = ages
			return nil
		},
		check: func() error {
			for i := range *p {
				if err := durationLeaf(key, &(*p)[i], -maxDuration).check(); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (p *Profile) binder(origin string) *binder {
	return &binder{leaves: loadLeaves(&p.Load), from: &p.from, origin: origin}
}

// ParseProfile lays the text of a run profile over DefaultProfile; otherwise as Parse.
func ParseProfile(data []byte, name string) (*Profile, error) {
	p := DefaultProfile()
	src, root, err := readFile(data, name)
	if err != nil {
		return nil, err
	}
	p.from.src, p.Join.from.src = src, src
	join, load := p.Join.binder(""), p.binder("")
	top := binder{leaves: []leaf{{key: "join"}, {key: "load"}}, from: &p.from}
	top.leaves[0].set = func(n node) error { join.walk("", n); return nil }
	top.leaves[1].set = func(n node) error { load.walk("load.", n); return nil }
	top.walk("", root)
	if faults := slices.Concat(top.faults, join.faults, load.faults); len(faults) > 0 {
		return nil, asError(faults)
	}
	return p, nil
}

// Set is Join.Set with the keys load.* too; those of the join may have "join." in front.
func (p *Profile) Set(key, value, origin string) error {
	if key == "load" || strings.HasPrefix(key, "load.") {
		b := p.binder(origin)
		b.set(key, value)
		return asError(b.faults)
	}
	return p.Join.Set(strings.TrimPrefix(key, "join."), value, origin)
}

// ApplyEnv is Join.ApplyEnv with JOINBENCH_LOAD_* too.
func (p *Profile) ApplyEnv(environ []string, own ...string) error {
	leaves := append(p.Join.binder("").leaves, p.binder("").leaves...)
	return applyEnv(environ, own, leaves, p.Set)
}

// Validate is Join.Validate, and the same for the load; an age beyond the window is refused, for such a pair
// is none.
func (p *Profile) Validate() error {
	var faults []Fault
	if err := p.Join.Validate(); err != nil {
		faults = err.(*Error).Faults
	}
	b := p.binder("")
	for i := range b.leaves {
		if err := b.leaves[i].fault(); err != nil {
			b.fault(b.leaves[i].key, err)
		}
	}
	for _, age := range p.Load.Ages {
		if p.Join.hasWindow() && age > p.Join.Window.After {
			b.fault("load.ages", fmt.Errorf("load.ages: %s is beyond window.after = %s, such a pair does not match",
				formatDuration(age), formatDuration(p.Join.Window.After)))
		}
		if p.Join.hasWindow() && -age > p.Join.Window.Before {
			b.fault("load.ages", fmt.Errorf("load.ages: %s is beyond window.before = %s, such a pair does not match",
				formatDuration(age), formatDuration(p.Join.Window.Before)))
		}
	}
	if p.Load.TimedEvents > 0 && p.Load.SwapAfter == 0 {
		b.fault("load.timed_events", fmt.Errorf("load.timed_events: a whole run stands for the counts of all, so they must be the same in each: set load.swap_after"))
	}
	return asError(append(faults, b.faults...))
}

// Values is Join.Values with join. in front of its keys, then those of the load.
func (p *Profile) Values() []Value {
	vs := p.Join.Values()
	for i := range vs {
		vs[i].Key = "join." + vs[i].Key
	}
	return append(vs, p.binder("").values()...)
}

// Print writes the effective profile as YAML that ParseProfile reads, each value with its origin.
func (p *Profile) Print(w io.Writer) error { return printValues(w, p.Values()) }
