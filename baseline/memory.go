package baseline

import (
	"slices"
	"time"
	"unsafe"

	"joinbench/buckets"
	"joinbench/core"
)

// Memory is a core.Joiner that holds the A in a map. One goroutine at a time calls it.
type Memory struct {
	cfg     *core.Config
	waiting map[string]*event  // by key: the earliest that waits
	buckets map[int64][]*event // by epoch: all that came, used ones too
	pending int
	bytes   int64 // of the entries that wait

	// The batch in progress: what Undo takes back.
	added, used, out []*event
	found            core.Found
	stats            core.TaskStats
}

// event is one A. Its bytes are never changed, so that key may point into them.
type event struct {
	entry []byte // buckets.Entry
	key   string
	time  int64
	next  *event // of the same key, in the order of rule 2
	last  *event // of the list; kept by its first
	gone  bool   // one-to-one: it has paired
	out   bool   // it came out without a partner
	pairs int    // one-to-many: how often it has paired
}

// NewMemory makes an empty one. The configuration is the engine's: window, width, cardinality and WantA count.
func NewMemory(cfg *core.Config) *Memory {
	return &Memory{cfg: cfg, waiting: map[string]*event{}, buckets: map[int64][]*event{}}
}

// Begin implements core.Joiner.
func (m *Memory) Begin() {
	f := &m.found
	clear(f.Matches) // they point into chunks and events
	clear(f.UnmatchedA)
	f.Matches, f.UnmatchedB, f.UnmatchedA = f.Matches[:0], f.UnmatchedB[:0], f.UnmatchedA[:0]
}

// Store implements core.Joiner.
func (m *Memory) Store(a []core.Rows) error {
	start := time.Now()
	for _, rows := range a {
		c := rows.Chunk()
		for _, row := range rows.Index() {
			m.store(c, row)
		}
	}
	m.stats.StoreTime += time.Since(start)
	return nil
}

func (m *Memory) store(c *core.Chunk, row uint32) {
	en := buckets.Entry{Partition: c.Partition, Time: c.Time[row], Offset: c.Offset[row], Key: c.Key(row), Body: c.BodyOf(row)}
	e := &event{entry: en.AppendTo(make([]byte, 0, en.Size())), time: en.Time}
	at := len(e.entry) - len(en.Body) - len(en.Key)
	e.key = unsafe.String(&e.entry[at], len(en.Key)) // one allocation less, and 32 bytes
	m.insert(e)
	epoch := buckets.EpochOf(e.time, m.cfg.Width)
	m.buckets[epoch] = append(m.buckets[epoch], e)
	m.added = append(m.added, e)
	m.stats.Stored++
}

// insert puts an event into the list of its key.
func (m *Memory) insert(e *event) {
	m.pending++
	m.bytes += int64(len(e.entry))
	head := m.waiting[e.key]
	switch {
	case head == nil:
		e.next, e.last = nil, e
		m.waiting[e.key] = e
	case head.last.before(e):
		e.next = nil
		head.last.next, head.last = e, e
	case e.before(head):
		e.next, e.last = head, head.last
		m.waiting[e.key] = e
	default:
		p := head
		for !e.before(p.next) {
			p = p.next
		}
		e.next, p.next = p.next, e
	}
}

func (e *event) before(o *event) bool { return buckets.EntryBefore(e.entry, o.entry) }

// remove takes an event out of the list of its key; before is the one in front of it, nil if it is the first.
func (m *Memory) remove(e, before *event) {
	m.pending--
	m.bytes -= int64(len(e.entry))
	switch {
	case before != nil:
		before.next = e.next
		if head := m.waiting[e.key]; head.last == e {
			head.last = before
		}
	case e.next != nil:
		e.next.last = e.last
		m.waiting[e.next.key] = e.next // by its own bytes: those of e may go
	default:
		delete(m.waiting, e.key)
	}
}

// Ask implements core.Joiner.
func (m *Memory) Ask(b []core.Rows) error {
	start, pos := time.Now(), uint32(0)
	for _, rows := range b {
		c := rows.Chunk()
		for _, row := range rows.Index() {
			if head := m.waiting[string(c.Key(row))]; head != nil && m.pair(c, row, pos, head) {
				// it has its A
			} else if m.cfg.WantB {
				m.found.UnmatchedB = append(m.found.UnmatchedB, core.Ref{Chunk: c, Row: row})
			}
			pos++
		}
	}
	m.stats.Probes += uint64(pos)
	m.stats.AskTime += time.Since(start)
	return nil
}

// pair looks for the earliest A of a key whose window has the B (rules 1 and 2).
func (m *Memory) pair(c *core.Chunk, row, pos uint32, head *event) bool {
	from, to := c.Time[row]-m.cfg.After, c.Time[row]+m.cfg.Before
	var before *event
	for e := head; e != nil && e.time <= to; before, e = e, e.next {
		if e.time < from {
			continue
		}
		m.found.Matches = append(m.found.Matches, core.NewMatch(core.Ref{Chunk: c, Row: row}, pos, e.entry))
		if m.cfg.Cardinality == core.OneToOne {
			m.remove(e, before)
			e.gone = true
			m.used = append(m.used, e)
		} else if m.cfg.WantA {
			e.pairs++
			m.used = append(m.used, e)
		}
		return true
	}
	return false
}

// Release implements core.Joiner: A that never paired, by bucket and then as they came.
func (m *Memory) Release(by [2]core.Limits) error {
	l := by[core.A]
	if !m.cfg.WantA {
		return nil
	}
	for _, epoch := range m.below(buckets.EpochOf(l.Closed+m.cfg.Width-1, m.cfg.Width)) {
		for _, e := range m.buckets[epoch] {
			if !e.gone && !e.out && e.pairs == 0 && e.time < l.Closed {
				e.out = true
				m.out = append(m.out, e)
				m.found.UnmatchedA = append(m.found.UnmatchedA, e.entry)
			}
		}
	}
	return nil
}

// More and GoOn implement core.Joiner: a batch comes in one part.
func (m *Memory) More() bool { return false }

// GoOn implements core.Joiner.
func (m *Memory) GoOn() error { return nil }

// below lists the epochs under a floor, ascending.
func (m *Memory) below(floor int64) []int64 {
	var due []int64
	for epoch := range m.buckets {
		if epoch < floor {
			due = append(due, epoch)
		}
	}
	slices.Sort(due)
	return due
}

// Found implements core.Joiner.
func (m *Memory) Found() core.Found { return m.found }

// Undo implements core.Joiner.
func (m *Memory) Undo() {
	for _, e := range m.out {
		e.out = false
	}
	for _, e := range m.used {
		if e.gone {
			e.gone = false
			m.insert(e)
		} else {
			e.pairs--
		}
	}
	for _, e := range slices.Backward(m.added) {
		var before *event
		for at := m.waiting[e.key]; at != e; at = at.next {
			before = at
		}
		m.remove(e, before)
		epoch := buckets.EpochOf(e.time, m.cfg.Width)
		if list := m.buckets[epoch]; len(list) > 1 {
			m.buckets[epoch] = list[:len(list)-1]
		} else {
			delete(m.buckets, epoch)
		}
	}
	m.forget()
}

// Changes implements core.Joiner.
func (m *Memory) Changes([]core.Change) ([]core.Change, error) { return nil, errNoChangelog }

// Apply implements core.Joiner.
func (m *Memory) Apply([]core.Change, [2]core.Limits) error { return errNoChangelog }

// Commit implements core.Joiner: there is nothing to make last. What has paired gives its bytes back.
func (m *Memory) Commit(uint64, []byte) error {
	start := time.Now()
	for _, e := range m.used {
		if e.gone {
			*e = event{gone: true}
		}
	}
	m.forget()
	m.stats.AskTime += time.Since(start)
	return nil
}

// forget ends the batch.
func (m *Memory) forget() {
	clear(m.added)
	clear(m.used)
	clear(m.out)
	m.added, m.used, m.out = m.added[:0], m.used[:0], m.out[:0]
}

// Maintain implements core.Joiner: buckets below the floor expire.
func (m *Memory) Maintain(to [2]core.Bounds) error {
	floor := to[core.A].Floor
	start := time.Now()
	for _, epoch := range m.below(floor) {
		for _, e := range m.buckets[epoch] {
			m.expire(e.key, floor)
		}
		delete(m.buckets, epoch)
		m.stats.DroppedTotal++
	}
	m.stats.AskTime += time.Since(start)
	return nil
}

// expire cuts what lies below the floor off the list of a key; what has paired has no key any more.
func (m *Memory) expire(key string, floor int64) {
	for e := m.waiting[key]; e != nil && buckets.EpochOf(e.time, m.cfg.Width) < floor; e = m.waiting[key] {
		m.remove(e, nil)
	}
}

// WriteCommit implements core.Joiner.
func (m *Memory) WriteCommit([]byte) error { return nil }

// Quiesce implements core.Joiner.
func (m *Memory) Quiesce() error { return nil }

// MarkDrained implements core.Joiner.
func (m *Memory) MarkDrained() error { return nil }

// Close implements core.Joiner.
func (m *Memory) Close(bool) error { return nil }

// Stats implements core.Joiner.
func (m *Memory) Stats() *core.TaskStats { return &m.stats }

// Levels implements core.Joiner. ArenaBytes are those of the entries that wait, without map, lists and garbage.
func (m *Memory) Levels(bool) core.Levels {
	return core.Levels{Pending: m.pending, Open: len(m.buckets), ArenaBytes: m.bytes}
}

// Drops implements core.Joiner: no files go.
func (m *Memory) Drops() []core.Drop { return nil }
