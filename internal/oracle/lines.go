package oracle

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Line prints one pair as the output file has it, without newline.
func Line(a, b *Event) string { return head(a.Key.JSON(), max(a.Time, b.Time), a.Body) + b.Body + "}" }

func head(key string, ts int64, a string) string {
	return `{"key":` + key + `,"ts":` + strconv.FormatInt(ts, 10) + `,"a":` + a + `,"b":`
}

// NullLine prints an event that has no partner: null for the other side, its own time, and null for a key that it lacks.
func NullLine(ev *Event) string {
	key := ev.Key.JSON()
	if ev.NullKey {
		key = "null"
	}
	if ev.sideB {
		return head(key, ev.Time, "null") + ev.Body + "}"
	}
	return head(key, ev.Time, ev.Body) + "null}"
}

// correctedLine prints the first pair of an A whose null row is out (rule 17).
func correctedLine(a, b *Event) string {
	return strings.TrimSuffix(Line(a, b), "}") + `,"corrected":true}`
}

// groupLine prints an A with its B in the order of time, partition and offset (rule 19).
func groupLine(a *Event, bs []*Event, corrected, complete bool) string {
	bs = slices.Clone(bs)
	slices.SortFunc(bs, func(x, y *Event) int {
		return cmp.Or(cmp.Compare(x.Time, y.Time), cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Offset, y.Offset))
	})
	ts := a.Time
	var bodies []string
	for _, b := range bs {
		ts = max(ts, b.Time)
		bodies = append(bodies, b.Body)
	}
	line := head(a.Key.JSON(), ts, a.Body) + "[" + strings.Join(bodies, ",") + "]"
	if corrected {
		line += `,"corrected":true`
	}
	line += fmt.Sprintf(`,"complete":%v`, complete)
	if !complete {
		line += fmt.Sprintf(`,"got":%d`, len(bs))
		if a.Wanted > 0 {
			line += fmt.Sprintf(`,"wanted":%d`, a.Wanted)
		}
	}
	return line + "}"
}

// tombstone prints what takes the null row of an A back: the key under which that row went out.
func tombstone(a *Event) string { return `{"key":` + rowKey(a) + `,"retract":true}` }

// rowKey is the key of an A's null row: the field that the configuration names, or the join key if the A lacks it.
func rowKey(a *Event) string {
	if a.OwnKey != "" {
		return a.OwnKey
	}
	return a.Key.JSON()
}

// extras are what the join wants to know of the records of each side beside key, time and body (rules 17 to 19).
func (c *Config) extras() (look [2]func(*Event, value), err error) {
	paths := map[string]path{}
	for key, text := range map[string]string{"complete_on": c.CompleteOn.Field, "collect": c.Collect.Path} {
		if text == "" {
			continue
		}
		if paths[key], err = parsePath(text); err != nil {
			return look, fmt.Errorf("%s: %w", key, err)
		}
	}
	for _, f := range c.A.Keep {
		if f.Name == c.OutputKey {
			if paths["key"], err = parsePath(f.Path); err != nil {
				return look, fmt.Errorf("keep: %w", err)
			}
		}
	}
	if c.CompleteOn.Emit != "" && paths["complete_on"] == nil || (c.Collect.Mode == Count || c.Collect.Mode == Marker) && paths["collect"] == nil {
		return look, fmt.Errorf("complete_on or collect has no path")
	}
	look[0] = func(a *Event, doc value) {
		if c.Collect.Mode == Count {
			a.Wanted = wanted(doc, paths["collect"])
		}
		if p := paths["key"]; p != nil {
			if v, ok := doc.at(p); ok {
				a.OwnKey = v.compact()
				if v.kind == '"' {
					a.OwnKey = quote(v.text)
				}
			}
		}
	}
	look[1] = func(b *Event, doc value) {
		b.Ends = c.CompleteOn.Emit != "" && says(doc, paths["complete_on"], c.CompleteOn.Equals)
		b.Marks = c.Collect.Mode == Marker && says(doc, paths["collect"], c.Collect.Equals)
	}
	return look, nil
}

var count1to999999 = regexp.MustCompile(`^[1-9][0-9]{0,5}$`)

// wanted is the count of rule 19, or 0.
func wanted(doc value, p path) int {
	v, ok := doc.at(p)
	if !ok || v.kind != '0' || !count1to999999.MatchString(v.text) {
		return 0
	}
	n, _ := strconv.Atoi(v.text)
	return n
}

// says compares a field as text: a string's decoded characters, a number as written, true and false by these words. Null,
// objects and arrays equal nothing.
func says(doc value, p path, text string) bool {
	v, ok := doc.at(p)
	switch {
	case !ok:
		return false
	case v.kind == '"' || v.kind == '0':
		return v.text == text
	case v.kind == 't' || v.kind == 'f':
		return v.raw == text
	}
	return false
}
