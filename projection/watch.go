package projection

import (
	"bytes"
	"fmt"
)

// Test is a field whose value is looked for. The value is compared as text: that of a string by its decoded characters, a
// number's as written, true and false by these words. Null, objects, arrays and an absent field equal nothing. In lenient
// mode neither does a value that is no valid JSON.
type Test struct{ Path, Equals string }

// Flags say of a record which tests it passed.
type Flags uint8

// The flags, one for each test of a SideSpec.
const (
	Ends  Flags = 1 << iota // SideSpec.Ends
	Marks                   // SideSpec.Marks
)

// MaxWanted is the largest count that SideSpec.Count may find.
const MaxWanted = 999_999

// watch is what a decoder looks for beside key, time and body.
type watch struct {
	tests []fieldTest
	count *node // nil: no count
}

type fieldTest struct {
	flag   Flags
	node   *node
	equals []byte
}

func (s *Spec) compileWatch(side SideSpec) error {
	for _, t := range []struct {
		name string
		flag Flags
		test *Test
	}{{"complete_on", Ends, side.Ends}, {"collect: marker", Marks, side.Marks}} {
		if t.test == nil {
			continue
		}
		path, err := ParsePath(t.test.Path)
		if err != nil {
			return fmt.Errorf("%s: field: %w", t.name, err)
		}
		s.watch.tests = append(s.watch.tests, fieldTest{t.flag, s.plan.add(path), []byte(t.test.Equals)})
	}
	if side.Count != "" {
		path, err := ParsePath(side.Count)
		if err != nil {
			return fmt.Errorf("collect: count: %w", err)
		}
		s.watch.count = s.plan.add(path)
	}
	return nil
}

// noteWatched adds to the rows what the record that was read last says; one that joins nothing says nothing.
func (d *Decoder) noteWatched(rows *Rows, value []byte, joins bool) {
	w := &d.spec.watch
	if len(w.tests) > 0 {
		var flags Flags
		for i := range w.tests {
			if t := &w.tests[i]; joins && d.equals(value, d.scanner.spans[t.node.id], t.equals) {
				flags |= t.flag
			}
		}
		rows.Flags = append(rows.Flags, flags)
	}
	if w.count != nil {
		wanted := uint32(0)
		if at := d.scanner.spans[w.count.id]; joins && at.found() {
			wanted = parseWanted(value[at.from:at.to])
		}
		rows.Wanted = append(rows.Wanted, wanted)
	}
}

// equals compares the value there with a text, as Test says.
func (d *Decoder) equals(value []byte, at span, text []byte) bool {
	if !at.found() || at.from == at.to || !d.valid && !validScalar(value, at) {
		return false
	}
	switch value[at.from] {
	case 'n', '{', '[':
		return false
	case '"':
		inside := value[at.from+1 : at.to-1]
		if bytes.IndexByte(inside, '\\') < 0 {
			return bytes.Equal(inside, text)
		}
		d.scratch = appendUnquoted(d.scratch[:0], inside)
		return bytes.Equal(d.scratch, text)
	}
	return bytes.Equal(value[at.from:at.to], text)
}

// parseWanted reads a whole number from 1 to MaxWanted, written as digits alone; 0 of anything else.
func parseWanted(value []byte) uint32 {
	if len(value) == 0 || len(value) > 6 || value[0] == '0' {
		return 0
	}
	n := digits(value)
	return uint32(max(n, 0))
}
