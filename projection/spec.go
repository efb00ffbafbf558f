package projection

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// SideSpec says what to take out of the records of one side, as the configuration has it.
type SideSpec struct {
	Key       []string // "@key" or paths; of several the first that exists counts
	KeyString bool     // key_type: string, so that numbers are keys of their text
	Time      string   // "@timestamp" (also if empty), "arrival", or a path
	TimeUnit  string   // for a path: ms, us, ns, s or rfc3339
	Store     string   // "projection" (also if empty), "full", or "offset", which makes bodies as "projection" does
	Keep      []KeepField
	Lenient   bool          // validate: lenient
	MaxSkew   time.Duration // 0 = off (files)

	// What rows say beside key, time and body, if it is asked for; nil and "" are not.
	Ends, Marks *Test  // Rows.Flags
	Count       string // Rows.Wanted: a path

	// Now is the wall clock; nil is time.Now. It is asked for "arrival" and, with MaxSkew, when the event time
	// is the record time. Decoders call it from their own goroutines.
	Now func() time.Time
}

// KeepField is one field that the output needs.
type KeepField struct {
	Name string // name in the output; empty: the last element of the path
	Path string
}

// Spec is a compiled SideSpec: immutable, for any number of goroutines.
type Spec struct {
	plan      *plan
	key       []keySource
	keyString bool
	timeFrom  timeSource
	timeUnit  timeUnit
	timeNode  *node // for fromField
	keep      []keepField
	full      bool // store: full
	lenient   bool
	checkSkew bool
	maxSkew   int64 // ms
	now       func() time.Time
	watch     watch
	watches   bool // there is something to watch for

	names []string // of the kept fields in outputs

	// For outputs from full events: the kept fields alone, and the readers at rest.
	keepPlan *plan
	keepFull []keepField
	readers  sync.Pool // *bodyReader
}

type timeSource uint8

const (
	fromRecord timeSource = iota
	fromArrival
	fromField
)

// keySource is one entry of the key list; node is nil for the record key.
type keySource struct{ node *node }

type keepField struct {
	member []byte // the name as JSON and a colon
	node   *node
}

// Compile checks a spec and prepares it. Errors name the setting, and for a path the column of the fault.
func Compile(side SideSpec) (*Spec, error) {
	s := &Spec{plan: newPlan(), keepPlan: newPlan(), keyString: side.KeyString, lenient: side.Lenient, now: side.Now}
	if s.now == nil {
		s.now = time.Now
	}
	if err := errors.Join(s.compileKey(side), s.compileTime(side), s.compileStore(side), s.compileKeep(side), s.compileWatch(side)); err != nil {
		return nil, err
	}
	s.watches = len(s.watch.tests) > 0 || s.watch.count != nil
	s.readers.New = func() any { return s.newBodyReader() }
	return s, nil
}

func (s *Spec) compileKey(side SideSpec) error {
	if len(side.Key) == 0 {
		return errors.New(`key: missing: "@key" or a path`)
	}
	for _, text := range side.Key {
		if text == "@key" {
			s.key = append(s.key, keySource{})
			continue
		}
		path, err := ParsePath(text)
		if err != nil {
			return fmt.Errorf("key: %w", err)
		}
		s.key = append(s.key, keySource{s.plan.add(path)})
	}
	return nil
}

func (s *Spec) compileTime(side SideSpec) error {
	if side.MaxSkew < 0 {
		return fmt.Errorf("max_skew: %v is negative", side.MaxSkew)
	}
	s.checkSkew, s.maxSkew = side.MaxSkew > 0, side.MaxSkew.Milliseconds()
	switch side.Time {
	case "", "@timestamp":
		s.timeFrom = fromRecord
		return nil
	case "arrival":
		s.timeFrom = fromArrival
		return nil
	}
	path, err := ParsePath(side.Time)
	if err != nil {
		return fmt.Errorf(`time: neither "@timestamp" nor "arrival", and %w`, err)
	}
	unit, ok := timeUnits[side.TimeUnit]
	if !ok {
		return fmt.Errorf("time_unit: %q is none of ms, us, ns, s, rfc3339 (needed for time: %s)", side.TimeUnit, side.Time)
	}
	s.timeFrom, s.timeUnit, s.timeNode = fromField, unit, s.plan.add(path)
	return nil
}

func (s *Spec) compileStore(side SideSpec) error {
	switch side.Store {
	case "", "projection", "offset": // what waits without its body is for whoever stores it
	case "full":
		s.full = true
	default:
		return fmt.Errorf("store: %q is none of projection, full, offset", side.Store)
	}
	return nil
}

func (s *Spec) compileKeep(side SideSpec) error {
	paths := map[string]string{} // by output name
	for _, field := range side.Keep {
		path, err := ParsePath(field.Path)
		if err != nil {
			return fmt.Errorf("keep: %w", err)
		}
		name := field.Name
		if name == "" {
			name = path.Last()
		}
		if name == "" && len(path.steps) == 0 {
			return fmt.Errorf("keep: path %q, column 1: has no last element to name the field after: write {name: path}", field.Path)
		}
		if other, ok := paths[name]; ok {
			return fmt.Errorf("keep: %s and %s have the same output name %q: write {name: path} for one", other, field.Path, name)
		}
		paths[name] = field.Path
		s.names = append(s.names, name)
		member := append(appendQuoted(nil, []byte(name)), ':')
		s.keepFull = append(s.keepFull, keepField{member, s.keepPlan.add(path)})
		if !s.full { // full events are projected when they come out
			s.keep = append(s.keep, keepField{member, s.plan.add(path)})
		}
	}
	return nil
}
