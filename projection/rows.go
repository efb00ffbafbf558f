package projection

import "math"

// Rows are decoded records as flat arrays, one row a record, in the order in which they were appended. The
// caller owns them and reuses them between batches; after Reset nothing taken out of them is valid. Offsets
// are 32 bits wide: a batch holds less than 4 GiB of bodies.
type Rows struct {
	Fate []Fate
	Time []int64 // event time in ms, 0 to 9999-12-31T23:59:59.999Z; valid for Accepted and NullKey, else 0

	Keys   []byte   // typed keys; that of row i is Keys[KeyOff[i]:KeyOff[i+1]], empty unless Accepted
	KeyOff []uint32 // one more than rows

	Body    []byte   // stored bodies, the same scheme; empty unless Accepted or NullKey
	BodyOff []uint32 // one more than rows

	// Of specs that ask for them, else empty; zero unless Accepted.
	Flags  []Flags
	Wanted []uint32 // the number in SideSpec.Count, 1 to MaxWanted; 0: the record has no such number
}

// Reset empties the rows and keeps their memory.
func (r *Rows) Reset() {
	r.Fate, r.Time = r.Fate[:0], r.Time[:0]
	r.Keys, r.KeyOff = r.Keys[:0], append(r.KeyOff[:0], 0)
	r.Body, r.BodyOff = r.Body[:0], append(r.BodyOff[:0], 0)
	r.Flags, r.Wanted = r.Flags[:0], r.Wanted[:0]
}

// Len is the number of rows.
func (r *Rows) Len() int { return len(r.Fate) }

// Key gives the typed key of row i: one tag byte ('s' string, 'n' number), then the decoded bytes of the
// string or the number as written. It points into Keys.
func (r *Rows) Key(i int) []byte { return r.Keys[r.KeyOff[i]:r.KeyOff[i+1]] }

// BodyOf gives the stored body of row i. It points into Body.
func (r *Rows) BodyOf(i int) []byte { return r.Body[r.BodyOff[i]:r.BodyOff[i+1]] }

// end closes a row: what was appended to Keys and Body since the last one is its key and body.
func (r *Rows) end(fate Fate, time int64) {
	if len(r.Keys) > math.MaxUint32 || len(r.Body) > math.MaxUint32 {
		panic("projection: a batch of 4 GiB and more")
	}
	if len(r.KeyOff) == 0 { // rows that were never reset: the first row starts at 0
		r.KeyOff, r.BodyOff = append(r.KeyOff, 0), append(r.BodyOff, 0)
	}
	r.Fate = append(r.Fate, fate)
	r.Time = append(r.Time, time)
	r.KeyOff = append(r.KeyOff, uint32(len(r.Keys)))
	r.BodyOff = append(r.BodyOff, uint32(len(r.Body)))
}
