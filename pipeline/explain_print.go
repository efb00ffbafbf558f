package pipeline

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"joinbench/core"
)

// WriteText writes an explanation for people: how many records there are, then a block for each with its verdict first.
func (x *Explanation) WriteText(w io.Writer) error {
	var s strings.Builder
	var n [2]int
	for _, e := range x.Events {
		n[e.Side]++
	}
	fmt.Fprintf(&s, "key %s: %d of A, %d of B\n", x.Key, n[core.A], n[core.B])
	for _, e := range x.Events {
		x.block(&s, e)
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// block writes one event.
func (x *Explanation) block(s *strings.Builder, e *ExplainedEvent) {
	const indent = "\n  %-9s "
	fmt.Fprintf(s, "\n%s: %s", e.ID, e.Verdict)
	if e.Line > 0 {
		fmt.Fprintf(s, indent+"line %d", "read", e.Line)
	} else {
		fmt.Fprintf(s, indent+"offset %d", "read", e.Offset)
	}
	if e.timed() {
		fmt.Fprintf(s, ", time %d (%s)", e.Time, time.UnixMilli(e.Time).UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	last := uint64(0)
	for _, step := range e.Steps {
		label := ""
		if step.Step == "no_match" {
			label = "why"
		} else if step.Batch != last {
			label, last = fmt.Sprintf("batch %d", step.Batch), step.Batch
		}
		fmt.Fprintf(s, indent+"%s", label, step.Text)
		if step.Rule > 0 {
			fmt.Fprintf(s, " (rule %d)", step.Rule)
		}
		for _, l := range step.Output {
			fmt.Fprintf(s, indent+"→ %s: %s", "", l.To, l.Line)
		}
	}
	s.WriteByte('\n')
}

// timed says whether a record has a time.
func (e *ExplainedEvent) timed() bool {
	switch e.Fate {
	case core.Accepted, core.NullKey, core.Late, core.LateIdle:
		return true
	}
	return false
}

// explainedJSON is a step as WriteJSON has it.
type explainedJSON struct {
	Event     string         `json:"event"`
	Side      string         `json:"side"`
	Topic     string         `json:"topic"`
	Partition int32          `json:"partition"`
	Offset    int64          `json:"offset"`
	Line      int64          `json:"line,omitempty"`
	Time      *int64         `json:"time,omitempty"`
	Batch     uint64         `json:"batch,omitempty"`
	Step      string         `json:"step"`
	Rule      int            `json:"rule,omitempty"`
	With      []string       `json:"with,omitempty"`
	WMA       any            `json:"wm_a,omitempty"`
	WMB       any            `json:"wm_b,omitempty"`
	Output    []outputInJSON `json:"output,omitempty"`
	Text      string         `json:"text"`
}

type outputInJSON struct {
	To   string          `json:"to"`
	Line json.RawMessage `json:"line"`
}

// WriteJSON writes one object for each step, in the order in which they happened, and one for each event's verdict behind them.
func (x *Explanation) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, s := range x.Steps {
		o := x.object(s.Event)
		o.Batch, o.Step, o.Rule, o.Text = s.Batch, s.Step, s.Rule, s.Text
		o.WMA, o.WMB = wmJSON(s.WM[core.A]), wmJSON(s.WM[core.B])
		for _, e := range s.With {
			o.With = append(o.With, e.ID)
		}
		for _, l := range s.Output {
			o.Output = append(o.Output, outputInJSON{l.To, json.RawMessage(l.Line)})
		}
		if err := enc.Encode(o); err != nil {
			return err
		}
	}
	for _, e := range x.Events {
		o := x.object(e)
		o.Step, o.Text = "verdict", e.Verdict
		if err := enc.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

func (x *Explanation) object(e *ExplainedEvent) explainedJSON {
	o := explainedJSON{Event: e.ID, Side: e.Side.String(), Topic: x.topics[e.Side], Partition: e.Partition, Offset: e.Offset, Line: e.Line}
	if e.timed() {
		o.Time = &e.Time
	}
	return o
}

// wmJSON is a watermark: ms, "end", or nothing.
func wmJSON(wm int64) any {
	switch core.NoTime(wm) {
	case -1:
		return nil
	case 1:
		return "end"
	}
	return wm
}
