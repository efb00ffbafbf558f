package pipeline

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"joinbench/core"
	"joinbench/internal/near"
	"joinbench/projection"
)

// The words of an explanation.

var ruleOfFate = map[core.Fate]int{core.NullKey: 4, core.BadKey: 4, core.Malformed: 5, core.BadTime: 9, core.Late: 8, core.LateIdle: 8, core.Redelivered: 3}

func upper(s core.Side) string { return strings.ToUpper(s.String()) }

// timeText is a time or watermark in ms.
func timeText(at int64) string {
	switch core.NoTime(at) {
	case -1:
		return "not known yet"
	case 1:
		return "end of input"
	}
	return strconv.FormatInt(at, 10)
}

func msText(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

// distance says how far a B lies from an A in time.
func (x *explainer) distance(b, a *ExplainedEvent) string {
	d := b.Time - a.Time
	if b.Side == core.A {
		d = -d
	}
	switch {
	case d == 0:
		return "at the same time"
	case d < 0:
		return "tB = tA − " + msText(-d)
	}
	return "tB = tA + " + msText(d)
}

func (x *explainer) whyRefused(e *ExplainedEvent, r *core.Reject) string {
	switch g := x.out.cfg.Grace; r.Fate {
	case core.Late:
		return fmt.Sprintf("late: t + G = %d + %d < M(p) = %d, the greatest time of its partition", e.Time, g, r.M)
	case core.LateIdle:
		return fmt.Sprintf("late after idleness: t = %d, and all that it could match is over", e.Time)
	case core.NullKey:
		return "its key is absent or null: it joins nothing"
	case core.BadKey:
		return "its key is an object, an array or a boolean"
	case core.Malformed:
		return "it is not one whole valid JSON value"
	case core.BadTime:
		return "it has no usable event time"
	case core.Redelivered:
		return "its partition was read beyond this offset before"
	}
	return r.Fate.String()
}

// sayHeld adds why an event was held back, if it was.
func (x *explainer) sayHeld(e *ExplainedEvent) {
	if e.heldFrom == 0 {
		return
	}
	what := ""
	if e.behind != nil {
		what = fmt.Sprintf("it stands behind offset %d of its partition: ", *e.behind)
	}
	rule, why := 13, ""
	switch e.hold.Why {
	case core.HoldAligned:
		rule, why = 12, fmt.Sprintf("asks when WM_A > tB + before + G = %d, and WM_A was %s", e.hold.Past, timeText(e.hold.WMA))
	case core.HoldSpread:
		why = fmt.Sprintf("more than max_spread ahead of %s, whose next event had not reached %d", upper(1-e.Side), e.hold.Past)
	case core.HoldRing:
		why = "its bucket would have displaced one that was not due to drop"
	}
	x.step(e, "held", rule, fmt.Sprintf("held back in %s: %s%s", batches(e.heldFrom, e.heldTo), what, why))
}

func batches(from, to uint64) string {
	if from == to {
		return fmt.Sprintf("batch %d", from)
	}
	return fmt.Sprintf("batches %d to %d", from, to)
}

func (x *explainer) whyAsked(e *ExplainedEvent) string {
	switch x.out.cfg.Probe {
	case core.ProbeWait:
		return "asks at once (probe: wait)"
	case core.ProbeImmediate:
		return "asks at once and never again (probe: immediate)"
	}
	return fmt.Sprintf("asks: WM_A = %s > tB + before + G = %d, so every A that could match has come", timeText(x.wm[core.A]), e.Time+x.out.cfg.Before+x.out.cfg.Grace)
}

// closesAt is the time that the other side's watermark must pass.
func (x *explainer) closesAt(e *ExplainedEvent) int64 {
	if e.Side == core.A {
		return e.Time + x.out.cfg.After + x.out.cfg.Grace
	}
	return e.Time + x.out.cfg.Before + x.out.cfg.Grace
}

// untilText is rule 10 for an event.
func (x *explainer) untilText(e *ExplainedEvent) string {
	if e.Side == core.A {
		return fmt.Sprintf("WM_B > tA + after + G = %d", x.closesAt(e))
	}
	return fmt.Sprintf("WM_A > tB + before + G = %d", x.closesAt(e))
}

func (x *explainer) whyWaits(e *ExplainedEvent) string {
	w := x.out.cfg.Width
	elsewhere := ""
	if e.epoch != x.out.cfg.BucketOf(e.Time) {
		elsewhere = ", the oldest open one (rule 8)"
	}
	return fmt.Sprintf("waits in the bucket of %d to %d%s, until %s", e.epoch*w, (e.epoch+1)*w-1, elsewhere, x.untilText(e))
}

func (x *explainer) closedBy(e *ExplainedEvent) string {
	wm := timeText(x.wm[1-e.Side])
	return strings.Replace(x.untilText(e), " >", " = "+wm+" >", 1)
}

func (x *explainer) whyClosed(e *ExplainedEvent) string {
	switch {
	case e.pairs > 0:
		return "closes, and has paired: " + x.closedBy(e)
	case e.early:
		return "closes, and its null row has come: " + x.closedBy(e)
	}
	return "closes: " + x.closedBy(e)
}

func (x *explainer) whyEarly(e *ExplainedEvent) string {
	at := e.Time + x.out.cfg.Early + x.out.cfg.Grace
	if wm := x.wm[core.B]; wm > at {
		return fmt.Sprintf("its null row comes early: WM_B = %s > tA + early + G = %d", timeText(wm), at)
	}
	return fmt.Sprintf("its null row comes: its first B is after tA + early = %d", e.Time+x.out.cfg.Early)
}

// finish says how it stands at the end.
func (x *explainer) finish() *Explanation {
	x.settle()
	for _, e := range x.live {
		if e.waits {
			x.step(e, "waiting", 15, fmt.Sprintf("still waits at the end of the input (no drain), until %s; WM_%s is %s", x.untilText(e), upper(1-e.Side), timeText(x.wm[1-e.Side])))
		}
	}
	for _, e := range x.pending {
		e.at = core.Ref{}
		x.sayHeld(e)
		x.step(e, "waiting", 15, "is still held back at the end of the input (no drain)")
	}
	// What was never taken comes last, the others in the order in which they were.
	slices.SortStableFunc(x.out.Events, func(a, b *ExplainedEvent) int {
		first := func(e *ExplainedEvent) uint64 {
			for _, s := range e.Steps {
				if s.Step != "held" {
					return s.Batch
				}
			}
			return 0
		}
		if a.known != b.known {
			return cmp.Compare(b2i(b.known), b2i(a.known))
		}
		if a.known && first(a) != first(b) {
			return cmp.Compare(first(a), first(b))
		}
		return cmp.Compare(a.Side, b.Side)
	})
	for _, e := range x.out.Events {
		e.Verdict = x.verdict(e)
	}
	for _, e := range x.out.Events {
		if e.unmatched || e.early && e.pairs == 0 && !e.grouped {
			x.sayWhyAlone(e)
		}
	}
	x.out.Near, x.out.OtherType = x.near.list(), x.near.otherType
	return x.out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// verdict is an event's fate in a few words.
func (x *explainer) verdict(e *ExplainedEvent) string {
	met := func(word string) string {
		if len(e.with) == 1 {
			return word + " " + e.with[0].ID
		}
		return fmt.Sprintf("%s %d of %s", word, len(e.with), upper(1-e.Side))
	}
	switch {
	case !e.known:
		return "still held back"
	case e.Fate != core.Accepted:
		return e.Fate.String() + ": joins nothing"
	case e.pairs > 0 && e.early:
		return met("null row early, then paired with")
	case e.pairs > 0:
		return met("paired with")
	case e.grouped && e.Side == core.A:
		return met("grouped with")
	case e.grouped:
		return met("in the group of")
	case e.unmatched:
		if last := e.Steps[len(e.Steps)-1]; len(last.Output) > 0 && last.Output[len(last.Output)-1].To == "results" {
			return "no partner: null row"
		}
		return "no partner: no result"
	case e.ended && e.early:
		return "null row early, then ended by " + e.with[len(e.with)-1].ID
	case e.ended:
		return "ended by " + e.with[len(e.with)-1].ID + ": no result"
	case len(e.with) > 0 && e.Side == core.B && x.out.cfg.Collect == core.CollectEager:
		return met("ends")
	case len(e.with) > 0 && e.Side == core.B:
		return met("taken by")
	case e.early && e.waits:
		return "null row early; still waits"
	case e.early:
		return "no partner: null row early"
	case e.waits:
		return "still waits"
	}
	return "no result"
}

// sayWhyAlone tells of the other side's nearest events why they are no partners.
func (x *explainer) sayWhyAlone(e *ExplainedEvent) {
	const most = 3
	var others []*ExplainedEvent
	for _, o := range x.out.Events {
		if o.Side != e.Side {
			others = append(others, o)
		}
	}
	far := func(o *ExplainedEvent) int64 { return max(o.Time-e.Time, e.Time-o.Time) }
	slices.SortStableFunc(others, func(a, b *ExplainedEvent) int { return cmp.Compare(far(a), far(b)) })
	if len(others) == 0 {
		x.reason(e, 0, fmt.Sprintf("no record of %s has this key", upper(1-e.Side)))
	}
	for i, o := range others {
		if i == most {
			x.reason(e, 0, fmt.Sprintf("and %d more of %s", len(others)-most, upper(1-e.Side)))
			return
		}
		rule, why := x.whyNot(e, o)
		x.reason(e, rule, o.ID+": "+why, o)
	}
}

// reason is a step that did not happen: why there is no pair.
func (x *explainer) reason(e *ExplainedEvent, rule int, text string, with ...*ExplainedEvent) {
	s := x.step(e, "no_match", rule, text, with...)
	s.Batch, s.WM = 0, [2]int64{math.MinInt64, math.MinInt64}
}

func (x *explainer) whyNot(e, o *ExplainedEvent) (rule int, why string) {
	if o.Fate != core.Accepted || !o.known {
		return 0, o.Verdict
	}
	a, b := e, o
	if e.Side == core.B {
		a, b = o, e
	}
	switch d := b.Time - a.Time; {
	case d < -x.out.cfg.Before:
		return 1, fmt.Sprintf("%s, and the window begins at tA − %s", x.distance(b, a), msText(x.out.cfg.Before))
	case d > x.out.cfg.After:
		return 1, fmt.Sprintf("%s, and the window ends at tA + %s", x.distance(b, a), msText(x.out.cfg.After))
	}
	return 2, "in the window, but " + o.Verdict
}

// nearKeys are the keys nearest to one that no record has.
type nearKeys struct {
	best      []nearKey
	otherType bool
}

type nearKey struct {
	far int
	key string // as JSON
}

func (n *nearKeys) add(key, wanted []byte) {
	const longest, most = 64, 3
	if len(key) == 0 || len(wanted) > longest || n.otherType {
		return
	}
	text, want := string(key[1:]), string(wanted[1:])
	if text == want { // of another type, or it would be the one
		n.best, n.otherType = []nearKey{{0, string(projection.AppendKey(nil, key))}}, true
		return
	}
	limit := max(1, len(want)/3)
	if len(n.best) == most {
		limit = min(limit, n.best[most-1].far-1)
	}
	if d := len(text) - len(want); limit <= 0 || d > limit || -d > limit {
		return
	}
	far := near.Distance(text, want)
	json := string(projection.AppendKey(nil, key))
	if far > limit || slices.ContainsFunc(n.best, func(k nearKey) bool { return k.key == json }) {
		return
	}
	n.best = append(n.best, nearKey{far, json})
	slices.SortStableFunc(n.best, func(a, b nearKey) int { return cmp.Compare(a.far, b.far) })
	n.best = n.best[:min(len(n.best), most)]
}

func (n *nearKeys) list() (keys []string) {
	for _, k := range n.best {
		keys = append(keys, k.key)
	}
	return keys
}
