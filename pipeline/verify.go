package pipeline

import (
	"context"
	"fmt"
	"math"
	"time"

	"joinbench/config"
	"joinbench/core"
	"joinbench/kafka"
	"joinbench/loadgen"
)

// VerifyConfig says which output is held against which workload.
type VerifyConfig struct {
	Profile *config.Profile // validated, its join by ValidateServe too
	Kafka   kafka.Options
	To      int64 // the B that were loaded, and the A that come before these; 0: all
	// AtLeastOnce: a result may come more than once; how often is counted.
	AtLeastOnce bool
	// Stopped: the join was not drained, and is judged by what its group says that it has read. It must have stopped.
	Stopped bool
	// Wait is how long to wait, from the last result on, for results that are missing.
	Wait     time.Duration
	Examples int // of each kind of fault
	Progress *Progress
}

// VerifyReport is what Verify found.
type VerifyReport struct {
	Fingerprint string      `json:"workload_fingerprint"`
	Topic       string      `json:"topic"`
	To          int64       `json:"to_b"`
	Records     int64       `json:"records"` // read of the output
	Tombstones  int64       `json:"tombstones"`
	Pairs       VerifyTally `json:"pairs"`
	NullsA      VerifyTally `json:"nulls_a"`
	NullsB      VerifyTally `json:"nulls_b"`
	Groups      VerifyTally `json:"groups"`
	// Altered are records that are about records of the workload, and say something else than these, or about none.
	Altered    int64 `json:"altered"`
	Expected   int64 `json:"expected_pairs"`
	Matches    int64 `json:"matches"`
	Missing    int64 `json:"missing"`
	Spurious   int64 `json:"spurious"` // altered ones too
	Duplicated int64 `json:"duplicated"`
	Missed     int64 `json:"missed"` // with probe: immediate: pairs whose A came later, which is no fault
	AtLeast    bool  `json:"at_least_once"`
	Right      bool  `json:"right"`
	DurationNs int64 `json:"duration_ns"`

	Examples []VerifyExample `json:"examples"`
}

// VerifyTally is one kind of results.
type VerifyTally struct {
	Expected   int64 `json:"expected"`
	Seen       int64 `json:"seen"`
	Missing    int64 `json:"missing"`
	Spurious   int64 `json:"spurious"`
	Duplicated int64 `json:"duplicated"`
}

// VerifyExample is one wrong result. What is missing has no place.
type VerifyExample struct {
	Fault     string `json:"fault"` // missing | spurious | duplicated
	Key       string `json:"key"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"` // -1: nowhere
	What      string `json:"what"`
}

// verify is a Verify under way.
type verify struct {
	VerifyConfig
	gen    *loadgen.Gen
	truth  *loadgen.Truth
	c      *compiled
	cut    loadgen.Cut
	places [2]*places
	again  int64 // tombstones
}

// Verify reads the output topic of a join from its beginning to its end and says what is missing, spurious or doubled, after an
// input that was loaded by Load and a join that was drained.
func Verify(ctx context.Context, c VerifyConfig) (*VerifyReport, error) {
	started := time.Now()
	v, err := newVerify(c)
	if err != nil {
		return nil, err
	}
	join := c.Profile.Join
	for s, topic := range []string{join.A.Topic, join.B.Topic} {
		below := []int64{v.gen.DueA(v.To), v.To}[s]
		if v.places[s], err = findPlaces(ctx, c.Kafka, v.gen, core.Side(s), topic, below); err != nil {
			return nil, err
		}
	}
	if c.Stopped {
		if err := v.cutAtGroup(ctx); err != nil {
			return nil, err
		}
	}
	j := newOutputJudge(v)
	if err := j.follow(ctx); err != nil {
		return nil, err
	}
	r := j.report()
	r.DurationNs = time.Since(started).Nanoseconds()
	return r, nil
}

func newVerify(c VerifyConfig) (*verify, error) {
	g, err := newGenerator(c.Profile)
	if err != nil {
		return nil, err
	}
	v := &verify{VerifyConfig: c, gen: g.gen}
	if v.c, err = compile(c.Profile.Join, true); err != nil {
		return nil, err
	}
	if v.truth, err = truthOf(g, &v.c.core); err != nil {
		return nil, err
	}
	if v.To == 0 {
		v.To = g.gen.BCount()
	}
	if v.To < 0 || v.To > g.gen.BCount() {
		return nil, usage("--to", "%d is not between 0 and the %d B that there are", v.To, g.gen.BCount())
	}
	v.cut = g.gen.Whole(g.gen.DueA(v.To), v.To)
	return v, nil
}

// cutAtGroup has the truth end where the group's offsets say that the join has come to.
func (v *verify) cutAtGroup(ctx context.Context) error {
	if r := v.truth.Rules(); r.NullsA || r.NullsB || r.Collect != loadgen.Eager {
		return usage("--stopped", "which null rows and groups have come depends on watermarks, which the group's offsets do not tell: drain the join (serve --drain)")
	}
	v.cut = loadgen.Cut{ClosedA: math.MinInt64, EarlyA: math.MinInt64, ClosedB: math.MinInt64}
	group := v.Profile.Join.Kafka.Group
	for s, list := range []*[]int64{&v.cut.A, &v.cut.B} {
		p := v.places[s]
		offsets, err := kafka.GroupOffsets(ctx, v.Kafka, group, p.topic, len(p.count))
		if err != nil {
			return err
		}
		if offsets == nil {
			return usage("--stopped", "group %s has read nothing of topic %s", group, p.topic)
		}
		for part, offset := range offsets {
			*list = append(*list, p.slots(int32(part), offset))
		}
	}
	return nil
}

// pollOutput is how often the output's end is looked for while results are missing.
const pollOutput = 200 * time.Millisecond

// follow reads the output to its end, and with Wait further for as long as something is missing.
func (j *outputJudge) follow(ctx context.Context) error {
	topic := j.Profile.Join.Output.Topic
	var from []kafka.Span
	for last := time.Now(); ; {
		spans, err := kafka.Spans(ctx, j.Kafka, topic)
		if err != nil {
			return err
		}
		if spans == nil && j.Wait == 0 {
			return fmt.Errorf("there is no topic %s: nothing to verify", topic)
		}
		todo := make([]kafka.Span, len(spans))
		read := j.records
		for p, s := range spans {
			todo[p] = s
			if p < len(from) {
				todo[p].Start = max(s.Start, from[p].End)
			} else if s.Start > 0 {
				return fmt.Errorf("topic %s, partition %d begins with offset %d: results are gone, and what is left cannot be verified", topic, p, s.Start)
			}
		}
		if err := kafka.Scan(ctx, j.Kafka, topic, todo, j.visit); err != nil {
			return err
		}
		from = spans
		if j.records > read {
			last = time.Now()
		}
		if j.Wait == 0 || j.complete() || time.Since(last) >= j.Wait {
			return nil
		}
		if err := wait(ctx, pollOutput); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j *outputJudge) visit(r *kafka.Record) error {
	j.Progress.Matches.Add(1)
	return j.take(r)
}

// complete says whether as much is there as should be, the lines that are held included.
func (j *outputJudge) complete() bool {
	return j.verifier.ResultAt(&j.cut).Missing <= int64(len(j.held))
}

// example keeps one of a fault, if there are few.
func (j *outputJudge) example(fault string, at recordPlace, what string) {
	if len(j.examples[fault]) < j.Examples {
		j.examples[fault] = append(j.examples[fault], VerifyExample{fault, at.key, at.partition, at.offset, what})
	}
}

func (j *outputJudge) report() *VerifyReport {
	j.finish()
	v := j.verifier.ResultAt(&j.cut)
	r := &VerifyReport{Fingerprint: j.gen.Fingerprint(), Topic: j.Profile.Join.Output.Topic, To: j.To, Records: j.records,
		Pairs: VerifyTally(v.Pairs), NullsA: VerifyTally(v.NullsA), NullsB: VerifyTally(v.NullsB), Groups: VerifyTally(v.Groups),
		Altered: j.altered, Expected: v.Expected, Matches: v.Matches, Missing: v.Missing, Spurious: v.Spurious + j.altered,
		Duplicated: v.Duplicated + j.again, Missed: v.Missed, AtLeast: j.AtLeastOnce}
	for _, n := range j.tombstones {
		r.Tombstones += int64(n)
	}
	r.Right = r.Missing == 0 && r.Spurious == 0 && (r.Duplicated == 0 || j.AtLeastOnce)
	if r.Missing > 0 {
		j.verifier.Missing(&j.cut, func(l loadgen.Line) bool {
			j.missing(l)
			return len(j.examples["missing"]) < j.Examples
		})
	}
	for _, fault := range []string{"missing", "spurious", "duplicated"} {
		r.Examples = append(r.Examples, j.examples[fault]...)
	}
	return r
}

func (j *outputJudge) missing(l loadgen.Line) {
	line := resultLine{kind: map[string]lineKind{"pair": linePair, "null_a": lineNullA, "null_b": lineNullB, "group": lineGroup}[l.Kind], i: l.A, j: l.B}
	side, index := core.A, l.A
	if index < 0 {
		side, index = core.B, l.B
	}
	j.example("missing", j.nowhere(side, index), j.describe(&line))
}
