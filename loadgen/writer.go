package loadgen

// Writer makes many records, cheapest when they are neighbours: what they have in common is found once, and of a
// record that is written over another one of its side only what differs is written. It belongs to one goroutine.
type Writer struct {
	g    *Gen
	memo fateMemo
}

// NewWriter returns a writer of the workload's records.
func (g *Gen) NewWriter() *Writer { return &Writer{g: g} }

// PutA writes the JSON value of A record i over dst, which has RecordBytes bytes, and returns the key in it and the event
// time in ms. With again dst holds the value of another A record of this workload.
func (w *Writer) PutA(dst []byte, i int64, again bool) (key []byte, time int64) {
	return w.g.putA(dst, i, again)
}

// PutB is PutA for B record j.
func (w *Writer) PutB(dst []byte, j int64, again bool) (key []byte, time int64) {
	return w.g.putB(dst, j, again, &w.memo)
}

// putA writes the value of A record i over dst, with again only what differs from that of any other A.
func (g *Gen) putA(dst []byte, i int64, again bool) (key []byte, time int64) {
	h := mix(uint64(i) + g.a.salt)
	t := &g.tmplA[0]
	if !again {
		copy(dst, t.text)
	}
	time = g.TimeA(i)
	t.fill(dst, i, time, h>>40)
	g.keys.put(dst[t.key:], g.keyNumberA(i))
	if t.count > 0 {
		putCount(dst[t.count:], g.LineCount(i))
	}
	putDec8(dst[t.customer:], h&(1<<26-1))
	if t.sku > 0 {
		putDec8(dst[t.sku:], h>>20&(1<<19-1))
		dst[t.quantities] = byte('1' + h%9)
	}
	return dst[t.key : t.key+g.cfg.KeyBytes], time
}

// putB is putA for B record j.
func (g *Gen) putB(dst []byte, j int64, again bool, m *fateMemo) (key []byte, time int64) {
	f := g.fateMemo(j, m)
	h := mix(uint64(j) + g.b.salt)
	t := g.statusOf(j, f.kind, h)
	if again {
		copy(dst, t.text[:t.head])
	} else {
		copy(dst, t.text)
	}
	t.fill(dst, j, f.time, h>>24&(1<<24-1))
	g.keys.put(dst[t.key:], g.keyNumber(&f, j))
	return dst[t.key : t.key+g.cfg.KeyBytes], f.time
}
