package pipeline

import (
	"context"
	"errors"
	"io"

	"joinbench/core"
	"joinbench/projection"
)

// ExplainConfig asks what becomes of one key in a join of two record files. The join is that of JoinConfig, with the same
// batches, over a state of its own that is thrown away; it writes no file.
type ExplainConfig struct {
	JoinConfig
	Key    string // the text of the key
	Number bool   // it is a JSON number, else a string (rule 4)
}

// Explanation is what became of one key.
type Explanation struct {
	Key    string // as JSON
	Events []*ExplainedEvent
	Steps  []*ExplainStep // of all events, in the order in which they happened
	// Near are keys of the input that resemble it, as JSON, nearest first, if no record has it; OtherType says that records have a
	// key of the same text that is of the other type.
	Near      []string
	OtherType bool
	topics    [2]string
	cfg       core.Config
}

// Found says whether any record has the key, or may have: one without a readable key whose line has the key's text.
func (x *Explanation) Found() bool { return len(x.Events) > 0 }

// ExplainedEvent is one record.
type ExplainedEvent struct {
	ID        string // side topic/partition@offset
	Side      core.Side
	Partition int32
	Offset    int64
	Line      int64 // in its file, from 1
	Fate      core.Fate
	Time      int64 // ms; of records that have a time
	Verdict   string
	Steps     []*ExplainStep

	known bool // it was taken, so that Fate is final
	part  int
	at    core.Ref // while it is not taken

	hold     core.Held // why it was held back at first
	behind   *int64    // the offset of the record that stood before it
	heldFrom uint64    // batch
	heldTo   uint64

	waits, said, sealed, ended, unmatched, early, grouped bool
	over                                                  bool
	epoch                                                 int64
	with                                                  []*ExplainedEvent // it met
	pairs                                                 int
}

// ExplainStep is one thing that happened to an event.
type ExplainStep struct {
	Event  *ExplainedEvent
	Batch  uint64 // from 1
	Step   string // read, held, refused, asked, waits, sealed, pair, collected, group, end, early, unmatched, closed, no_match, waiting
	Rule   int    // of the rules of the join; 0: none in particular
	With   []*ExplainedEvent
	Text   string
	Output []ExplainedLine // what the join writes by it; of a pair and a group with the A
	WM     [2]int64        // watermarks of the batch; see core.NoTime
}

// ExplainedLine is a line that the join writes, without its newline: to "results", "late", "dead" or "unmatched".
type ExplainedLine struct{ To, Line string }

// Explain joins two record files and tells what became of one key. Errors are those of Join.
func Explain(ctx context.Context, ec ExplainConfig) (x *Explanation, err error) {
	jc := ec.JoinConfig
	jc.Out, jc.Late, jc.Dead, jc.Unmatched, jc.Stats, jc.StateDir, jc.Stdout = "", "", "", "", "", "", io.Discard
	j, err := newFileJoin(jc)
	if err != nil {
		return nil, jc.advice("").readable(err)
	}
	defer func() { err = jc.advice(j.state.dir).readable(errors.Join(err, j.close())) }()
	j.explain = newExplainer(j, &ec)
	if err := j.openInputs(ctx); err != nil {
		return nil, err
	}
	if err := j.prepareState(); err != nil {
		return nil, err
	}
	if _, err := j.run(ctx); err != nil {
		return nil, err
	}
	return j.explain.finish(), nil
}

// newExplainer has the join tell of every event that closes, whoever wants it, and watch it all from one task: the key is in one.
func newExplainer(j *fileJoin, ec *ExplainConfig) *explainer {
	x := &explainer{places: map[place]*ExplainedEvent{}}
	tag := byte('s')
	if ec.Number {
		tag = 'n'
	}
	x.key, x.text = append([]byte{tag}, ec.Key...), []byte(ec.Key)
	j.c.core.WantA, j.c.core.WantB, j.c.core.Watch = true, true, x
	if j.tasks > 1 {
		j.tasks = 1
		if j.ArenaBytes == 0 {
			j.c.core.ArenaBytes = arenaBytes(j.Config, 1)
		}
	}
	x.out = &Explanation{Key: string(projection.AppendKey(nil, x.key)), cfg: j.c.core}
	return x
}
