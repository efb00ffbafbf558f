package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// sideLine prints a record as a side output does.
func sideLine(topic string, r refusal) string {
	text := func(s *string) string {
		if s == nil {
			return "null"
		}
		return quote(strings.ToValidUTF8(*s, "\ufffd"))
	}
	ts := ""
	if r.ts != nil && *r.ts != -1 {
		ts = fmt.Sprintf(`"ts":%d,`, *r.ts)
	}
	return fmt.Sprintf(`{"topic":%s,"partition":%d,"offset":%d,%s"key":%s,"payload":%s,"reason":%s}`, quote(topic), r.partition, r.offset, ts,
		text(r.key), text(r.payload), quote(r.reason))
}

// TestSideOutputsOfRandomWorkloads: the checks take the lines of the records that have those fates, and refuse them as soon
// as one is gone, twice, of the other output or altered in any field.
func TestSideOutputsOfRandomWorkloads(t *testing.T) {
	start := uint64(time.Now().UnixNano())
	t.Logf("seeds from %d", start)
	altered := map[string]int{}
	for seed := start; seed < start+100; seed++ {
		cfg, a, b, format := RandomWorkload(NewRand(seed))
		e, err := Expect(cfg, a, b, format)
		if err != nil {
			t.Fatal(err)
		}
		var late, dead []string
		for s, list := range e.records {
			for _, r := range refusals(list) {
				line := sideLine([]string{"left", "right"}[s], r)
				if r.reason == "late" {
					late = append(late, line)
				} else {
					dead = append(dead, line)
				}
			}
		}
		n := func(c Counters) (late, dead int64) { return c.Late, c.Malformed + c.BadKey + c.BadTime }
		la, da := n(e.CountersA)
		lb, db := n(e.CountersB)
		if int64(len(late)) != la+lb || int64(len(dead)) != da+db {
			t.Fatalf("seed %d: %d late and %d dead records, the counters say %d and %d", seed, len(late), len(dead), la+lb, da+db)
		}
		for _, out := range []struct {
			name         string
			lines, other []string
			check        func([]string, string, string) error
		}{{"late", late, dead, e.CheckLate}, {"dead", dead, late, e.CheckDead}} {
			if err := out.check(out.lines, "left", "right"); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, out.name, err)
			}
			if len(out.lines) == 0 {
				continue
			}
			i := int(seed) % len(out.lines)
			wrong := map[string][]string{
				"one is gone":   slices.Delete(slices.Clone(out.lines), i, i+1),
				"one is twice":  append(slices.Clone(out.lines), out.lines[i]),
				"not JSON":      append(slices.Clone(out.lines), "{"),
				"foreign topic": append(slices.Clone(out.lines), strings.Replace(out.lines[i], `t"`, `s"`, 1)),
			}
			if len(out.other) > 0 {
				wrong["of the other output"] = append(slices.Clone(out.lines), out.other[0])
			}
			for what, change := range map[string]func(string) string{
				"reason": func(l string) string { return strings.Replace(l, `"reason":"`, `"reason":"very `, 1) },
				"offset": func(l string) string { return strings.Replace(l, `"offset":`, `"offset":7`, 1) },
				"ts":     func(l string) string { return strings.Replace(l, `"ts":`, `"ts":1`, 1) },
				"key":    func(l string) string { return strings.Replace(l, `"key":"`, `"key":"x`, 1) },
				"payload": func(l string) string {
					if strings.Contains(l, "\ufffd") {
						return l // bytes that are not UTF-8: nothing is wanted of them
					}
					return strings.Replace(l, `"payload":"`, `"payload":"x`, 1)
				},
			} {
				if l := change(out.lines[i]); l != out.lines[i] {
					wrong[what] = slices.Clone(out.lines)
					wrong[what][i] = l
				}
			}
			for what, lines := range wrong {
				altered[what]++
				if out.check(lines, "left", "right") == nil {
					t.Errorf("seed %d: %s: %s, and nobody minds: %s", seed, out.name, what, out.lines[i])
				}
			}
		}
	}
	for _, what := range []string{"one is gone", "one is twice", "of the other output", "reason", "offset", "ts", "key", "payload", "foreign topic"} {
		if altered[what] == 0 {
			t.Errorf("never tried: %s", what)
		}
	}
}

// TestStoredBody: with StoreFull an unmatched A comes out whole, its result line does not.
func TestStoredBody(t *testing.T) {
	side := Side{Key: []string{"$.k"}, Time: "$.t", Keep: []Field{{Name: "id", Path: "$.id"}}}
	file := []byte(`{"k":"x", "t":5, "id":1}` + "\n")
	for full, want := range map[bool]string{false: `{"id":1}`, true: `{"k":"x","t":5,"id":1}`} {
		side.StoreFull = full
		e, err := Expect(Config{A: side, B: side}, file, nil, "value")
		if err != nil {
			t.Fatal(err)
		}
		as := e.AcceptedA()
		if len(as) != 1 || as[0].Stored != want || as[0].Body != `{"id":1}` {
			t.Fatalf("full %v: %+v", full, *as[0])
		}
		line := func(payload string) []string {
			return []string{`{"topic":"a","partition":0,"offset":0,"ts":5,"key":"x","payload":` + quote(payload) + `,"reason":"unmatched"}`}
		}
		if err := e.CheckUnmatched(nil, line(want), "a", "b"); err != nil {
			t.Errorf("full %v: %v", full, err)
		}
		if e.CheckUnmatched(nil, line(`{"k":1}`), "a", "b") == nil {
			t.Errorf("full %v: another body passes", full)
		}
	}
}
