package oracle

import (
	"errors"
	"fmt"
	"strings"
)

// Compare says whether the lines of a join are exactly Lines, as multisets: nothing missing, nothing spurious, nothing
// twice. Only the way in which a string key is escaped may differ. Use it when Exact is true.
func (e *Expected) Compare(lines []string) error {
	balance := map[string]int{}
	for _, l := range e.Lines {
		balance[l]++
	}
	var spurious, missing []string
	for _, l := range lines {
		c := canonical(l)
		if balance[c] == 0 {
			spurious = append(spurious, l)
			continue
		}
		balance[c]--
	}
	for _, l := range e.Lines {
		if balance[l] > 0 {
			balance[l]--
			missing = append(missing, l)
		}
	}
	if len(spurious)+len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%d lines expected, %d came: %d missing%s; %d spurious or twice%s",
		len(e.Lines), len(lines), len(missing), sample(missing), len(spurious), sample(spurious))
}

// CheckOrder says whether the lines stand in an order in which they can arise: of each A the null row before its tombstone
// before its first pair, which is the corrected one; and behind the pair that ends it nothing more (rules 17 and 18).
//
// Tombstones of several A that share a row key cannot be told apart. So of each key no more may have come than null rows, and no
// more corrected pairs than tombstones.
func (e *Expected) CheckOrder(lines []string) error {
	outs, err := e.see(lines)
	if err != nil {
		return err
	}
	return e.order(outs)
}

func (e *Expected) order(outs []out) error {
	rows, tombs, pairs := map[string]int{}, map[string]int{}, map[*Event]int{}
	null, ended := map[*Event]bool{}, map[*Event]bool{}
	for _, o := range outs {
		key := o.text
		if o.a != nil {
			key = tombstone(o.a)
		}
		switch {
		case o.kind == tombOut:
			if tombs[key]++; tombs[key] > rows[key] {
				return fmt.Errorf("%s: the null row that it takes back did not come before", o.text)
			}
		case o.kind == nullOut && o.a != nil && !o.a.NullKey:
			if pairs[o.a] > 0 {
				return fmt.Errorf("%s: comes after a pair of this A", o.text)
			}
			null[o.a] = true
			rows[key]++
		case o.corrected && !null[o.a]:
			return fmt.Errorf("%s: the null row that it corrects did not come before", o.text)
		case o.corrected && e.cfg.Retract && tombs[key] == 0:
			return fmt.Errorf("%s: no tombstone came before", o.text)
		case o.corrected && pairs[o.a] > 0:
			return fmt.Errorf("%s: is not the first pair of this A", o.text)
		case ended[o.a] && o.a != nil:
			return fmt.Errorf("%s: comes after the pair that ends this A", o.text)
		}
		if o.corrected && e.cfg.Retract {
			tombs[key]--
			rows[key]--
		}
		if len(o.bs) > 0 {
			pairs[o.a]++
			ended[o.a] = o.kind == pairOut && o.bs[0].Ends
		}
	}
	return nil
}

// canonical rewrites the key of an output line in the oracle's own escaping and leaves every other byte alone. What is not
// an output line stays as it is.
func canonical(line string) string {
	if key, ok := strings.CutPrefix(line, `{"key":"`); ok && strings.IndexByte(key, '"') >= 0 && !strings.Contains(key[:strings.IndexByte(key, '"')], `\`) {
		return line // most keys have nothing that could be escaped in another way
	}
	v, err := parseJSON([]byte(line))
	if err != nil {
		return line
	}
	key, ok := v.member("key")
	if !ok || key.kind != '"' {
		return line
	}
	rest, ok := strings.CutPrefix(line, `{"key":`+key.raw)
	if !ok {
		return line
	}
	return `{"key":` + quote(key.text) + rest
}

// sample prints the first few lines of a list.
func sample(lines []string) string {
	const few = 5
	if len(lines) == 0 {
		return ""
	}
	text := ":\n  " + strings.Join(lines[:min(few, len(lines))], "\n  ")
	if len(lines) > few {
		text += "\n  …"
	}
	return text
}

// ReadLines splits an output file into its lines. A last line without newline is an error: the writer was cut off.
func ReadLines(out []byte) ([]string, error) {
	text := string(out)
	if text == "" {
		return nil, nil
	}
	if !strings.HasSuffix(text, "\n") {
		return nil, errors.New("the last output line has no newline")
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), nil
}
