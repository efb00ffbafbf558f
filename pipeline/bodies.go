package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"joinbench/buckets"
	"joinbench/core"
	"joinbench/kafka"
	"joinbench/projection"
	"joinbench/results"
)

// bodySink stands before a sink when A wait without their bodies (a.store: offset). What a batch has to say goes to the sink in
// pieces: for each the records of its A are fetched from their topic, all at once, and the entries get the bodies that the decoder makes
// of them. So a body is what the configuration in force says, not the one under which the A began to wait.
//
// A record may be gone: retention or a deletion took it, or compaction did. One that is there and has another key than the entry is
// not the entry's either: the topic was made anew. What then becomes of the result is the key a.deleted.
//
// It belongs to the engine's goroutine.
type bodySink struct {
	core.Ledger
	ctx     context.Context
	log     *slog.Logger
	fetcher *kafka.Fetcher
	topic   string
	dec     *projection.Decoder
	deleted string // the key a.deleted
	// lost is the sink's Results for what goes to the dead letters.
	lost func(*core.Output) error

	gone int64 // records that were not there

	// Of the piece at hand.
	entries     []int // of each its slot; -1: it has a body
	slots       []bodySlot
	at          map[kafka.Place]int // slots
	places      []kafka.Place       // by slot
	body, arena []byte
	out, dead   core.Output
	perEntry    int // bytes of an entry with its body, as seen
}

// bodySlot is one A that an entry, or several, are of.
type bodySlot struct {
	entry buckets.Entry
	raw   []byte // with its body
	dead  bool   // it is gone, and its results are for the dead letters
}

const (
	// pieceBytes is about what the entries of a piece take at most; pieceMost and pieceLeast are numbers of entries.
	pieceBytes            = 8 << 20
	pieceMost, pieceLeast = 4096, 16
	noBody                = "{}" // of an A that is gone: an object without the fields that were to be kept
	reasonDeleted         = "deleted"
)

func newBodySink(to *kafkaSink, f *kafka.Fetcher, spec *projection.Spec, deleted string) *bodySink {
	return &bodySink{Ledger: to, ctx: to.ctx, log: to.log, fetcher: f, topic: to.inputs[core.A], dec: spec.NewDecoder(), deleted: deleted, lost: to.lostResults,
		at: map[kafka.Place]int{}, perEntry: 4096}
}

// Results implements core.Sink: the lists in the order in which the sink takes them from one output.
func (s *bodySink) Results(out *core.Output) error {
	err := inPieces(s, out.Matches, func(m *core.Match) *[]byte { return &m.Entry }, func(o *core.Output) *[]core.Match { return &o.Matches })
	if err == nil {
		err = inPieces(s, out.Groups, func(g *core.Group) *[]byte { return &g.A }, func(o *core.Output) *[]core.Group { return &o.Groups })
	}
	itself := func(e *[]byte) *[]byte { return e }
	if err == nil {
		err = inPieces(s, out.Early, itself, func(o *core.Output) *[][]byte { return &o.Early })
	}
	if err == nil {
		err = s.Ledger.Results(&core.Output{Rejects: out.Rejects, NullKeys: out.NullKeys, UnmatchedB: out.UnmatchedB})
	}
	if err == nil {
		err = inPieces(s, out.UnmatchedA, itself, func(o *core.Output) *[][]byte { return &o.UnmatchedA })
	}
	if err == nil && len(out.WaitedB) > 0 {
		err = s.Ledger.Results(&core.Output{WaitedB: out.WaitedB})
	}
	return err
}

// inPieces hands a list on, its entries filled. The list itself is not changed.
func inPieces[T any](s *bodySink, list []T, entry func(*T) *[]byte, in func(*core.Output) *[]T) error {
	for len(list) > 0 {
		n := min(len(list), max(pieceLeast, min(pieceMost, pieceBytes/s.perEntry)))
		s.begin()
		for i := range list[:n] {
			if err := s.ask(*entry(&list[i])); err != nil {
				return err
			}
		}
		if err := s.fill(); err != nil {
			return err
		}
		out, dead := in(&s.out), in(&s.dead)
		for i, v := range list[:n] {
			to := out
			if at := s.entries[i]; at >= 0 {
				slot := &s.slots[at]
				if *entry(&v) = slot.raw; slot.dead {
					to = dead
				}
			}
			*to = append(*to, v)
		}
		err := s.hand()
		*out, *dead = (*out)[:0], (*dead)[:0]
		if err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// hand passes the piece on.
func (s *bodySink) hand() error {
	if err := s.Ledger.Results(&s.out); err != nil {
		return err
	}
	if len(s.dead.Matches)+len(s.dead.Groups)+len(s.dead.Early)+len(s.dead.UnmatchedA) == 0 {
		return nil
	}
	return s.lost(&s.dead)
}

func (s *bodySink) begin() {
	clear(s.at)
	s.entries, s.slots, s.places, s.arena = s.entries[:0], s.slots[:0], s.places[:0], s.arena[:0]
}

// ask notes an entry of the piece, and if it is an A's without a body that this is wanted.
func (s *bodySink) ask(raw []byte) error {
	e, err := buckets.ParseEntry(raw)
	if err != nil {
		return err
	}
	slot := -1
	if !e.SideB && len(e.Body) == 0 {
		p := kafka.Place{Partition: e.Partition, Offset: e.Offset}
		var ok bool
		if slot, ok = s.at[p]; !ok {
			slot = len(s.slots)
			s.at[p] = slot
			s.slots, s.places = append(s.slots, bodySlot{entry: e}), append(s.places, p)
		}
	}
	s.entries = append(s.entries, slot)
	return nil
}

// fill fetches what is wanted.
func (s *bodySink) fill() error {
	if len(s.places) == 0 {
		return nil
	}
	var gone []int
	err := s.fetcher.Fetch(s.ctx, s.places, func(i int, rec *projection.Record) {
		slot, ok := &s.slots[i], false
		if rec != nil {
			s.body, ok = s.dec.AppendBodyOf(s.body[:0], rec, slot.entry.Key)
		}
		if !ok {
			gone = append(gone, i)
			s.body = append(s.body[:0], noBody...)
		}
		slot.entry.Body, slot.dead = s.body, !ok && s.deleted == "dead"
		from := len(s.arena)
		s.arena = slot.entry.AppendTo(s.arena)
		slot.raw = s.arena[from:len(s.arena):len(s.arena)]
	})
	if err != nil {
		return fmt.Errorf("a.store: offset: %w", err)
	}
	s.perEntry = (7*s.perEntry + len(s.arena)/len(s.slots) + 7) / 8
	return s.note(gone)
}

// note counts slots whose records are gone, and says so.
func (s *bodySink) note(gone []int) error {
	if len(gone) == 0 {
		return nil
	}
	s.gone += int64(len(gone))
	p := s.places[gone[0]]
	if s.deleted == "stop" {
		return fmt.Errorf("topic %s, partition %d, offset %d: a result needs this record, and it is not in the topic any more (nor are %d others of its batch), "+
			"and a.deleted is stop: set a.deleted: emit to have such results without the fields of a, or dead to have them in topics.dead; and let the topic keep records "+
			"for longer than they wait", s.topic, p.Partition, p.Offset, len(gone)-1)
	}
	s.log.Warn("records that results need are not in their topic any more", "topic", s.topic, "records", len(gone), "partition", p.Partition, "offset", p.Offset,
		"a.deleted", s.deleted)
	return nil
}

// count adds what was fetched, since this process began, to the counters.
func (s *bodySink) count(c *results.Counters) {
	st := s.fetcher.Stats()
	c.A.Fetched, c.A.FetchCacheHits, c.A.Deleted = st.Fetched, st.CacheHits, s.gone
}

// warnOfRetention says at the start what will take records while they wait.
func warnOfRetention(log *slog.Logger, t kafka.Topic, waits time.Duration) {
	policy := t.Settings["cleanup.policy"]
	if policy == "compact" || policy == "compact,delete" || policy == "delete,compact" {
		log.Warn("a.store: offset: the topic is compacted, and a record that a later one of its key took away has no body any more when it pairs", "topic", t.Name)
	}
	kept, err := strconv.ParseInt(t.Settings["retention.ms"], 10, 64)
	if err != nil || kept < 0 || policy == "compact" || kept > waits.Milliseconds() {
		return
	}
	log.Warn("a.store: offset: the topic keeps records for less time than they may wait, and what is deleted has no body any more when it pairs: raise its retention.ms",
		"topic", t.Name, "retention", time.Duration(kept)*time.Millisecond, "waits", waits)
}
