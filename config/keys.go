package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// leaf is one key that holds a value, bound to the field that it fills.
type leaf struct {
	key   string
	get   func() string    // the value as YAML on one line; "" = Print leaves the key out
	set   func(node) error // reads the value; does not judge it
	check func() error     // judges it: unknown value, out of range; nil = anything goes
	built []string         // what get may give in this build (a later one takes more); nil = everything
	note  func() string    // what Print adds, as the value of auto; nil = nothing
	// text is how a flag or an environment variable gives a value that is no scalar: as YAML if it begins
	// with [ or {, else, where comma is true, as a list with commas.
	structured, comma bool
}

// fault is what is wrong with the value itself, apart from all others.
func (l *leaf) fault() error {
	if l.check != nil {
		if err := l.check(); err != nil {
			return err
		}
	}
	if l.built == nil || slices.Contains(l.built, l.get()) {
		return nil
	}
	supported := strings.Join(l.built, ", ")
	if supported == "" {
		supported = "leave the key out"
	}
	return fmt.Errorf("%s: %s is not supported by this build yet (supported: %s)", l.key, l.get(), supported)
}

// joinLeaves binds every key of join.yaml to j, in the order in which they are printed.
func joinLeaves(j *Join) []leaf {
	var ls []leaf
	ls = append(ls, sideLeaves("a.", &j.A)...)
	ls = append(ls, enumLeaf("a.deleted", &j.Deleted, "emit", "dead", "stop").leaf, sizeLeaf("a.fetch_cache", &j.FetchCache, 1<<20, 1<<40))
	ls = append(ls, sideLeaves("b.", &j.B)...)
	ls = append(ls,
		durationLeaf("window.before", &j.Window.Before, 0),
		durationLeaf("window.after", &j.Window.After, 0),
		withinLeaf(&j.Window),
		durationLeaf("grace", &j.Grace, 0),
		durationLeaf("max_skew", &j.MaxSkew, 0),
		auto(durationLeaf("max_spread", &j.MaxSpread, time.Millisecond), &j.MaxSpread, j.Spread),
		durationLeaf("idle_timeout", &j.IdleTimeout, 0),
		durationLeaf("idle_advance", &j.IdleAdvance, 0),
		enumLeaf("type", &j.Type, "inner", "left", "right", "outer").leaf,
		enumLeaf("cardinality", &j.Cardinality, "one-to-one", "one-to-many", "many-to-many").leaf,
		enumLeaf("probe", &j.Probe, "aligned", "wait", "immediate").leaf,
		collectLeaf("collect", &j.Collect),
		durationLeaf("early", &j.Early, 0),
		boolLeaf("retract", &j.Retract),
		completeLeaf("complete_on", &j.CompleteOn),
		countLeaf("max_pending", &j.MaxPending, 0, maxCount),
		enumLeaf("unmatched", &j.Unmatched, "drop", "topic").leaf,
		enumLeaf("validate", &j.Validation, "strict", "lenient").leaf,
		stringLeaf("state.dir", &j.State.Dir, true),
		intLeaf("state.buckets", &j.State.Buckets, 2, 64),
		auto(durationLeaf("state.width", &j.State.Width, time.Millisecond), &j.State.Width, j.Width),
		enumLeaf("state.filter", &j.State.Filter, "fuse8", "fuse16", "fuse32", "bloom", "none").leaf,
		sizeLeaf("state.memory", &j.State.Memory, 1<<20, 1<<50),
		tasksLeaf("state.tasks", &j.State.Tasks),
		enumLeaf("state.sync", &j.State.Sync, "none", "interval", "batch").leaf,
		stringLeaf("output.topic", &j.Output.Topic, false),
		stringLeaf("output.key", &j.Output.Key, true),
		stringLeaf("topics.late", &j.Topics.Late, false),
		stringLeaf("topics.dead", &j.Topics.Dead, false),
		stringLeaf("topics.unmatched", &j.Topics.Unmatched, false),
		enumLeaf("delivery", &j.Delivery, "at-least-once", "exactly-once").leaf,
		listLeaf("kafka.brokers", &j.Kafka.Brokers),
		stringLeaf("kafka.group", &j.Kafka.Group, true),
		stringLeaf("kafka.instance", &j.Kafka.Instance, false),
		enumLeaf("kafka.isolation", &j.Kafka.Isolation, "read_committed", "read_uncommitted").leaf,
		enumLeaf("kafka.changelog", &j.Kafka.Changelog, "auto", "on", "off").leaf,
		only(boolLeaf("kafka.repartition", &j.Kafka.Repartition), "false"),
	)
	ls = append(ls, tlsLeaves("kafka.tls.", &j.Kafka.TLS)...)
	return append(ls, saslLeaves("kafka.sasl.", &j.Kafka.SASL)...)
}

func sideLeaves(prefix string, s *Side) []leaf {
	return []leaf{
		stringLeaf(prefix+"topic", &s.Topic, false),
		pathsLeaf(prefix+"key", &s.Key),
		enumLeaf(prefix+"key_type", &s.KeyType, "exact", "string").leaf,
		timeLeaf(prefix+"time", &s.Time),
		enumLeaf(prefix+"time_unit", &s.TimeUnit, "ms", "us", "ns", "s", "rfc3339").leaf,
		enumLeaf(prefix+"store", &s.Store, "projection", "full", "offset").leaf,
		keepLeaf(prefix+"keep", &s.Keep),
		enumLeaf(prefix+"kind", &s.Kind, "stream", "table", "broadcast").first(1),
	}
}

// only limits a leaf to the values that this build supports.
func only(l leaf, built ...string) leaf {
	l.built = built
	return l
}

// auto lets a duration be left to be worked out, which Print then shows.
func auto(l leaf, p *time.Duration, value func() time.Duration) leaf {
	l = orAuto(l, p)
	l.note = func() string {
		if *p != 0 {
			return ""
		}
		return "= " + formatDuration(value())
	}
	return l
}

// orAuto takes "auto" besides a number and stores it as 0, so that 0 itself is refused.
func orAuto[T int | float64 | time.Duration](l leaf, p *T) leaf {
	set, get, check := l.set, l.get, l.check
	l.set = func(n node) error {
		if n.kind == scalarNode && n.text == "auto" {
			*p = 0
			return nil
		}
		if err := set(n); err != nil {
			return err
		}
		if *p == 0 {
			return n.errorf("%s: %s must be more than 0 (or auto)", l.key, n.text)
		}
		return nil
	}
	l.get = func() string {
		if *p == 0 {
			return "auto"
		}
		return get()
	}
	l.check = func() error {
		if *p == 0 {
			return nil
		}
		return check()
	}
	return l
}

// scalar gives the text of a value that must be one.
func scalar(key string, n node) (string, error) {
	switch n.kind {
	case scalarNode:
		return n.text, nil
	case nullNode:
		return "", n.errorf("%s has no value (leave the key out for its default)", key)
	}
	return "", n.errorf("%s: %s is not a single value", key, n.brief())
}

// scalarLeaf makes a leaf of a text form: parse and format are each other's inverse.
func scalarLeaf[T any](key string, p *T, parse func(string) (T, error), format func(T) string) leaf {
	return leaf{
		key: key,
		get: func() string { return format(*p) },
		set: func(n node) error {
			s, err := scalar(key, n)
			if err != nil {
				return err
			}
			v, err := parse(s)
			if err != nil {
				return n.errorf("%s: %w", key, err)
			}
			*p = v
			return nil
		},
	}
}

func stringLeaf(key string, p *string, needed bool) leaf {
	l := scalarLeaf(key, p, func(s string) (string, error) { return s, nil }, quote)
	if needed {
		l.check = func() error {
			if *p == "" {
				return fmt.Errorf("%s must not be empty", key)
			}
			return nil
		}
	}
	return l
}

func boolLeaf(key string, p *bool) leaf {
	return scalarLeaf(key, p, func(s string) (bool, error) {
		switch s {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return false, unknownValue(s, []string{"true", "false"})
	}, strconv.FormatBool)
}

func durationLeaf(key string, p *time.Duration, least time.Duration) leaf {
	l := scalarLeaf(key, p, parseDuration, formatDuration)
	l.check = func() error {
		switch {
		case *p < least:
			return fmt.Errorf("%s: %s is less than %s", key, formatDuration(*p), formatDuration(least))
		case *p > maxDuration:
			return fmt.Errorf("%s: %s is too long (at most %s)", key, formatDuration(*p), formatDuration(maxDuration))
		case *p%time.Millisecond != 0:
			return fmt.Errorf("%s: %s is not a whole number of milliseconds", key, formatDuration(*p))
		}
		return nil
	}
	return l
}

// between checks a range and prints its ends as the key's values are printed.
func between[T int | int64 | float64](key string, p *T, lo, hi T, format func(T) string) func() error {
	return func() error {
		if !(*p >= lo && *p <= hi) {
			return fmt.Errorf("%s: %s is out of range (%s to %s)", key, format(*p), format(lo), format(hi))
		}
		return nil
	}
}

func intLeaf(key string, p *int, lo, hi int) leaf {
	l := scalarLeaf(key, p, func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number (%d to %d)", s, lo, hi)
		}
		return n, nil
	}, strconv.Itoa)
	l.check = between(key, p, lo, hi, strconv.Itoa)
	return l
}

const maxCount = 1e12 // of records or entries: years of the fastest stream, and products with it still fit int64

func countLeaf(key string, p *int64, lo, hi int64) leaf {
	l := scalarLeaf(key, p, parseCount, formatCount)
	l.check = between(key, p, lo, hi, formatCount)
	return l
}

func sizeLeaf(key string, p *int64, lo, hi int64) leaf {
	l := scalarLeaf(key, p, parseSize, formatSize)
	l.check = between(key, p, lo, hi, formatSize)
	return l
}

const maxTasks = 1024 // each has a store and a goroutine of its own; more than cores only costs

func tasksLeaf(key string, p *int) leaf {
	l := scalarLeaf(key, p, func(s string) (int, error) {
		if s == "auto" {
			return 0, nil
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("%q is neither auto nor a number from 1 to %d", s, maxTasks)
		}
		return n, nil
	}, func(n int) string {
		if n == 0 {
			return "auto"
		}
		return strconv.Itoa(n)
	})
	l.check = between(key, p, 0, maxTasks, strconv.Itoa)
	return l
}

// choice is a leaf with a fixed set of values.
type choice struct {
	leaf
	values []string
	p      *string
}

func enumLeaf(key string, p *string, values ...string) choice {
	c := choice{scalarLeaf(key, p, func(s string) (string, error) { return s, nil }, quote), values, p}
	c.check = enumCheck(key, p, values, values)
	return c
}

// first says that only the first n values are supported by this build.
func (c choice) first(n int) leaf {
	c.built = c.values[:n]
	c.check = enumCheck(c.key, c.p, c.values, c.built)
	return c.leaf
}

func enumCheck(key string, p *string, values, shown []string) func() error {
	return func() error {
		if slices.Contains(values, *p) {
			return nil
		}
		return fmt.Errorf("%s: %w", key, unknownValue(*p, shown))
	}
}

func unknownValue(got string, allowed []string) error {
	hint := ""
	if near := nearest(got, allowed, nil); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Errorf("unknown value %q (allowed: %s%s)", got, strings.Join(allowed, ", "), hint)
}

// withinLeaf sets both ends of the window. It is read only: Print writes the two ends.
func withinLeaf(w *Window) leaf {
	var d time.Duration
	l := durationLeaf("window.within", &d, 0)
	set := l.set
	l.set = func(n node) error {
		if err := set(n); err != nil {
			return err
		}
		w.Before, w.After = d, d
		return nil
	}
	l.get = func() string { return "" }
	return l
}
