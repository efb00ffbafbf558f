package loadgen

import "strings"

// template is the text of a record with its fixed parts in place, and where the varying
// ones go. All templates of a side have RecordBytes bytes.
type template struct {
	text                      []byte
	head                      int // from there on all templates of the side are the same
	key, id, amount, ts       int
	customer, sku, quantities int // A only; sku is 0 when the items did not fit
	count                     int // A only; 0 when there is none
}

// In a pattern, runs of these characters are overwritten: 12 digits of the record's
// number (N), the price (M), event time (T), customer (C), article (S), pieces (Q), lines (L).
// A number of lines has spaces in front, since JSON allows no leading zeros.
const (
	patternHeadA = `{"order_id":"ORD-NNNNNNNNNNNN","customer":"CUST-CCCCCCCC","payment_ref":"`
	patternTailA = `","amount":MMM.MM,"ts":TTTTTTTTTTTTT`
	patternCount = `,"line_count":LLL`
	patternItems = `,"items":[{"sku":"SKU-SSSSSSSS","qty":Q}]`
	patternHeadB = `{"payment_id":"PMT-NNNNNNNNNNNN","payment_ref":"`
	patternTailB = `","status":"` // status goes here
	patternEndB  = `","amount":MMM.MM,"ts":TTTTTTTTTTTTT`
	patternNote  = `,"note":"`
	patternClose = `"}`
	noteWords    = "deliver to the back door, ring twice, leave with a neighbour if nobody answers; "
)

// statuses are what payments say; a join looks at them only if it is told to.
var statuses = [...]string{"confirmed", "declined", "pending", "refunded"}

// The templates of a family's B: statuses, and StatusMarks behind them.
const (
	endsStatus  = 1
	marksStatus = len(statuses)
)

// otherStatuses are those that neither end nor mark.
var otherStatuses = [...]int{0, 2, 3, 0}

const longestStatus = len("confirmed")

// smallestRecord returns the least RecordBytes for keys of a size: the larger of both
// sides with an empty note.
func smallestRecord(keyBytes int, counts bool) int {
	note := len(patternNote) + len(patternClose)
	a := len(patternHeadA) + len(patternTailA)
	if counts {
		a += len(patternCount)
	}
	b := len(patternHeadB) + len(patternTailB) + longestStatus + len(patternEndB)
	return max(a, b) + keyBytes + note
}

func templatesA(c Config, blankKey string) []template {
	body := patternHeadA + blankKey + patternTailA
	if c.Family.Counts {
		body += patternCount
	}
	if len(body)+len(patternItems)+len(patternNote)+len(patternClose) <= c.RecordBytes {
		body += patternItems
	}
	t := newTemplate(body, c.RecordBytes)
	t.key = len(patternHeadA)
	t.customer = strings.Index(body, "CCCCCCCC")
	t.sku = max(0, strings.Index(body, "SSSSSSSS"))
	t.quantities = strings.Index(body, ":Q") + 1
	t.count = max(0, strings.Index(body, "LLL"))
	return markHeads([]template{t})
}

// templatesB returns a template for each status.
func templatesB(c Config, blankKey string) []template {
	var all []template
	said := statuses[:]
	if c.Family.MarkShare > 0 {
		said = append(said[:len(said):len(said)], StatusMarks)
	}
	for _, status := range said {
		body := patternHeadB + blankKey + patternTailB + status + patternEndB
		t := newTemplate(body, c.RecordBytes)
		t.key = len(patternHeadB)
		all = append(all, t)
	}
	return markHeads(all)
}

// markHeads finds where the templates of a side begin to be the same.
func markHeads(all []template) []template {
	head := 0
	for i := range all {
		for n := len(all[i].text); n > head; n-- {
			if all[i].text[n-1] != all[0].text[n-1] {
				head = n
			}
		}
	}
	for i := range all {
		all[i].head = head
	}
	return all
}

// newTemplate pads body with a note to size bytes and finds the parts that both sides have. The note is a long one's
// end: so a longer body moves nothing behind it.
func newTemplate(body string, size int) template {
	room := size - len(body) - len(patternNote) - len(patternClose)
	long := strings.Repeat(noteWords, size/len(noteWords)+1)
	note := long[len(long)-room:]
	return template{
		text:   []byte(body + patternNote + note + patternClose),
		id:     strings.Index(body, "NNNNNNNNNNNN"),
		amount: strings.Index(body, "MMM.MM"),
		ts:     strings.Index(body, "TTTTTTTTTTTTT"),
	}
}

// fill writes the parts that both sides have.
func (t *template) fill(v []byte, number, time int64, price uint64) {
	putDec12(v[t.id:], uint64(number))
	putDec13(v[t.ts:], uint64(time))
	putPrice(v[t.amount:], price)
}

// AppendA appends the JSON value of A record i: RecordBytes bytes with order_id,
// customer, payment_ref (the key), amount, ts (event time in ms), line_count with Family.Counts, items if they fit, note.
// It allocates only if dst is too small.
func (g *Gen) AppendA(dst []byte, i int64) []byte {
	n := len(dst)
	dst = append(dst, g.tmplA[0].text...)
	g.putA(dst[n:], i, true)
	return dst
}

// AppendAKey appends the join key of A record i, KeyBytes bytes.
func (g *Gen) AppendAKey(dst []byte, i int64) []byte { return g.appendKey(dst, g.keyNumberA(i)) }

// AppendB appends the JSON value of B record j: RecordBytes bytes with payment_id,
// payment_ref (the key), status, amount, ts (event time in ms), note. It allocates only
// if dst is too small.
func (g *Gen) AppendB(dst []byte, j int64) []byte {
	n := len(dst)
	dst = append(dst, g.tmplB[0].text...)
	g.putB(dst[n:], j, true, &fateMemo{})
	return dst
}

// AppendBKey appends the join key of B record j, KeyBytes bytes: what a record key
// ("@key") holds.
func (g *Gen) AppendBKey(dst []byte, j int64) []byte {
	f := g.fate(j)
	return g.appendKey(dst, g.keyNumber(&f, j))
}

// RecordA appends key and value of A record i, each to its slice, and returns the event
// time in ms too: cheaper than the three calls apart.
func (g *Gen) RecordA(key, value []byte, i int64) (k, v []byte, time int64) {
	n := len(value)
	value = append(value, g.tmplA[0].text...)
	k, time = g.putA(value[n:], i, true)
	return append(key, k...), value, time
}

// RecordB appends key and value of B record j, each to its slice, and returns the event
// time in ms too: cheaper than the three calls apart.
func (g *Gen) RecordB(key, value []byte, j int64) (k, v []byte, time int64) {
	n := len(value)
	value = append(value, g.tmplB[0].text...)
	k, time = g.putB(value[n:], j, true, &fateMemo{})
	return append(key, k...), value, time
}

// keyNumberA returns the number of the key of A record i: its index, or that of the first A of its key.
func (g *Gen) keyNumberA(i int64) uint64 {
	if g.as > 1 {
		if unit, a, ok := g.unitOfA(i); ok && a > 0 {
			return uint64(g.memberA(unit, 0))
		}
	}
	return uint64(i)
}

// keyNumber returns the number of the key that B record j carries, of which f is the fate.
func (g *Gen) keyNumber(f *fate, j int64) uint64 {
	if f.a >= 0 {
		return uint64(f.a)
	}
	if g.hot != nil {
		return bKeys + g.hot.absent.rank(mix(uint64(j)^g.b.salt))
	}
	return bKeys + uint64(j)
}

func (g *Gen) appendKey(dst []byte, number uint64) []byte {
	n := len(dst)
	dst = append(dst, g.keys.blank...)
	g.keys.put(dst[n:], number)
	return dst
}
