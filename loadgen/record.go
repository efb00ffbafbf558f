package loadgen

import "strings"

// template is the text of a record with its fixed parts in place, and where the varying
// ones go. All templates of a side have RecordBytes bytes.
type template struct {
	text                      []byte
	key, id, amount, ts       int
	customer, sku, quantities int // A only; sku is 0 when the items did not fit
}

// In a pattern, runs of these characters are overwritten: 12 digits of the record's
// number (N), the price (M), event time (T), customer (C), article (S), pieces (Q).
const (
	patternHeadA = `{"order_id":"ORD-NNNNNNNNNNNN","customer":"CUST-CCCCCCCC","payment_ref":"`
	patternTailA = `","amount":MMM.MM,"ts":TTTTTTTTTTTTT`
	patternItems = `,"items":[{"sku":"SKU-SSSSSSSS","qty":Q}]`
	patternHeadB = `{"payment_id":"PMT-NNNNNNNNNNNN","payment_ref":"`
	patternTailB = `","status":"` // status goes here
	patternEndB  = `","amount":MMM.MM,"ts":TTTTTTTTTTTTT`
	patternNote  = `,"note":"`
	patternClose = `"}`
	noteWords    = "deliver to the back door, ring twice, leave with a neighbour if nobody answers; "
)

// statuses are what payments say; the join does not look at them.
var statuses = [...]string{"confirmed", "declined", "pending", "refunded"}

const longestStatus = len("confirmed")

// smallestRecord returns the least RecordBytes for keys of a size: the larger of both
// sides with an empty note.
func smallestRecord(keyBytes int) int {
	note := len(patternNote) + len(patternClose)
	a := len(patternHeadA) + len(patternTailA)
	b := len(patternHeadB) + len(patternTailB) + longestStatus + len(patternEndB)
	return max(a, b) + keyBytes + note
}

func templatesA(c Config, blankKey string) []template {
	body := patternHeadA + blankKey + patternTailA
	if len(body)+len(patternItems)+len(patternNote)+len(patternClose) <= c.RecordBytes {
		body += patternItems
	}
	t := newTemplate(body, c.RecordBytes)
	t.key = len(patternHeadA)
	t.customer = strings.Index(body, "CCCCCCCC")
	t.sku = max(0, strings.Index(body, "SSSSSSSS"))
	t.quantities = strings.Index(body, ":Q") + 1
	return []template{t}
}

// templatesB returns a template for each status.
func templatesB(c Config, blankKey string) []template {
	var all []template
	for _, status := range statuses {
		body := patternHeadB + blankKey + patternTailB + status + patternEndB
		t := newTemplate(body, c.RecordBytes)
		t.key = len(patternHeadB)
		all = append(all, t)
	}
	return all
}

// newTemplate pads body with a note to size bytes and finds the parts that both sides have.
func newTemplate(body string, size int) template {
	room := size - len(body) - len(patternNote) - len(patternClose)
	note := strings.Repeat(noteWords, room/len(noteWords)+1)[:room]
	return template{
		text:   []byte(body + patternNote + note + patternClose),
		id:     strings.Index(body, "NNNNNNNNNNNN"),
		amount: strings.Index(body, "MMM.MM"),
		ts:     strings.Index(body, "TTTTTTTTTTTTT"),
	}
}

// fill appends the template with the parts that both sides have. v is what was appended.
func (t *template) fill(dst []byte, number, time int64, price uint64) (all, v []byte) {
	n := len(dst)
	dst = append(dst, t.text...)
	v = dst[n:]
	putDec12(v[t.id:], uint64(number))
	putDec13(v[t.ts:], uint64(time))
	putPrice(v[t.amount:], price)
	return dst, v
}

// AppendA appends the JSON value of A record i: RecordBytes bytes with order_id,
// customer, payment_ref (the key), amount, ts (event time in ms), items if they fit, note.
// It allocates only if dst is too small.
func (g *Gen) AppendA(dst []byte, i int64) []byte {
	return g.appendA(dst, i, g.TimeA(i))
}

func (g *Gen) appendA(dst []byte, i, time int64) []byte {
	h := mix(uint64(i) + g.a.salt)
	t := &g.tmplA[0]
	dst, v := t.fill(dst, i, time, h>>40)
	g.keys.put(v[t.key:], uint64(i))
	putDec8(v[t.customer:], h&(1<<26-1))
	if t.sku > 0 {
		putDec8(v[t.sku:], h>>20&(1<<19-1))
		v[t.quantities] = byte('1' + h%9)
	}
	return dst
}

// AppendAKey appends the join key of A record i, KeyBytes bytes.
func (g *Gen) AppendAKey(dst []byte, i int64) []byte { return g.appendKey(dst, uint64(i)) }

// AppendB appends the JSON value of B record j: RecordBytes bytes with payment_id,
// payment_ref (the key), status, amount, ts (event time in ms), note. It allocates only
// if dst is too small.
func (g *Gen) AppendB(dst []byte, j int64) []byte {
	f := g.fate(j)
	return g.appendB(dst, j, &f)
}

func (g *Gen) appendB(dst []byte, j int64, f *fate) []byte {
	h := mix(uint64(j) + g.b.salt)
	t := &g.tmplB[h>>62]
	dst, v := t.fill(dst, j, f.time, h>>24&(1<<24-1))
	g.keys.put(v[t.key:], f.keyNumber(j))
	return dst
}

// AppendBKey appends the join key of B record j, KeyBytes bytes: what a record key
// ("@key") holds.
func (g *Gen) AppendBKey(dst []byte, j int64) []byte {
	f := g.fate(j)
	return g.appendKey(dst, f.keyNumber(j))
}

// RecordA appends key and value of A record i, each to its slice, and returns the event
// time in ms too: cheaper than the three calls apart.
func (g *Gen) RecordA(key, value []byte, i int64) (k, v []byte, time int64) {
	time = g.TimeA(i)
	return g.appendKey(key, uint64(i)), g.appendA(value, i, time), time
}

// RecordB appends key and value of B record j, each to its slice, and returns the event
// time in ms too: cheaper than the three calls apart.
func (g *Gen) RecordB(key, value []byte, j int64) (k, v []byte, time int64) {
	f := g.fate(j)
	value = g.appendB(value, j, &f)
	at := len(value) - g.cfg.RecordBytes + g.tmplB[0].key // the same place in all of them
	return append(key, value[at:at+g.cfg.KeyBytes]...), value, f.time
}

// keyNumber returns the number of the key that B record j carries.
func (f *fate) keyNumber(j int64) uint64 {
	if f.a >= 0 {
		return uint64(f.a)
	}
	return bKeys + uint64(j)
}

func (g *Gen) appendKey(dst []byte, number uint64) []byte {
	n := len(dst)
	dst = append(dst, g.keys.blank...)
	g.keys.put(dst[n:], number)
	return dst
}
