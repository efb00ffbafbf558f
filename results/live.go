package results

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// Progress is a way to show a run while it goes on.
type Progress string

// The values of --progress. Auto is a bar on a terminal and plain lines elsewhere.
const (
	ProgressAuto  Progress = "auto"
	ProgressTTY   Progress = "tty"
	ProgressPlain Progress = "plain"
	ProgressJSON  Progress = "json"
	ProgressNone  Progress = "none"
)

// ParseProgress reads a value of --progress.
func ParseProgress(text string) (Progress, error) {
	switch p := Progress(text); p {
	case ProgressAuto, ProgressTTY, ProgressPlain, ProgressJSON, ProgressNone:
		return p, nil
	}
	return "", fmt.Errorf("progress %q is not known (auto, tty, plain, json, none)", text)
}

// Snapshot is where the run stands: counts since its start, that its owner adds up atomically once per batch. Counts that
// fall (a new arm starts from zero) start a new reckoning.
type Snapshot struct {
	Phase    string
	Done     int64 // of the phase, in records or whatever Total is in
	Total    int64 // 0 = not known: no percentage and no ETA
	A        int64 // records of A taken in
	Probes   int64 // B that asked
	Matches  int64
	Lookups  int64
	Pending  int64
	RSSBytes int64 // anonymous memory; 0 = Live reads it itself
	Bare     bool  // nothing is joined: nothing waits or matches

	AbsentQueries, FalsePositives int64 // of the filter

	// Of an open loop; OfferedPerS is 0 in a closed one, and the rest is not shown then. Queue are B that are due and not
	// taken. Lag and Recent are over the last half second or so, P50 and P99 of response over the phase so far.
	OfferedPerS                        float64
	Queue, Dropped                     int64
	LagP99Ns, RecentP50Ns, RecentP99Ns int64
	ResponseP50Ns, ResponseP99Ns       int64
}

// LiveOptions set up a Live. Read is required.
type LiveOptions struct {
	Progress Progress        // "" = auto
	Out      io.Writer       // nil = os.Stderr
	Read     func() Snapshot // called from Live's goroutine; quick, takes no lock that the hot path holds
	Every    time.Duration   // 0 = 1 s
}

// Live shows the progress of a run until Stop. It owns one goroutine, and on a terminal those of the bar. Errors in writing
// are not reported: a run does not end because nobody watches it any more.
type Live struct {
	opt   LiveOptions
	start time.Time
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once
	track tracker // of the goroutine; after it has ended, of Stop
	mu    struct {
		sync.Mutex // guards writing to Out, and bar
		bar        *ttyBar
	}
}

// StartLive starts to show progress, the first time after one interval. With ProgressNone it does nothing until Stop.
func StartLive(opt LiveOptions) *Live {
	if opt.Out == nil {
		opt.Out = os.Stderr
	}
	if opt.Every <= 0 {
		opt.Every = time.Second
	}
	if opt.Progress == ProgressAuto || opt.Progress == "" {
		opt.Progress = ProgressPlain
		if isTerminal(opt.Out) && os.Getenv("TERM") != "dumb" {
			opt.Progress = ProgressTTY
		}
	}
	l := &Live{opt: opt, start: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	if opt.Progress == ProgressNone {
		close(l.done)
		return l
	}
	l.track = tracker{start: l.start, last: l.start, phaseStart: l.start}
	if opt.Progress == ProgressTTY {
		l.mu.bar = newTTYBar(opt.Out)
	}
	go l.run()
	return l
}

func (l *Live) run() {
	defer close(l.done)
	mem := newMemReader()
	defer mem.Close()
	tick := time.NewTicker(l.opt.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.show(mem, false)
		case <-l.stop:
			l.show(mem, true)
			return
		}
	}
}

// Stop shows where the run stands at its end, ends the goroutine and leaves the cursor on a line of its own. Further calls
// do nothing.
func (l *Live) Stop() {
	l.once.Do(func() { close(l.stop) })
	<-l.done
}

// show takes a snapshot and writes it in the way that was asked for.
func (l *Live) show(mem *memReader, final bool) {
	s := l.opt.Read()
	if s.RSSBytes == 0 {
		s.RSSBytes = mem.read().AnonBytes
	}
	f := l.track.next(s, time.Now())
	f.Final = final
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.opt.Progress {
	case ProgressTTY:
		l.mu.bar.show(f)
		if final {
			l.mu.bar.close()
			l.mu.bar = nil
		}
	case ProgressJSON:
		line, _ := json.Marshal(f) // numbers and strings only: never fails
		l.opt.Out.Write(append(line, '\n'))
	case ProgressPlain:
		if final && s.Done == 0 && s.Total == 0 {
			return // nothing began: an error follows, and a line of zeros would only hide it
		}
		io.WriteString(l.opt.Out, f.plain()+"\n")
	}
}

// Write prints a message (whole lines) without tearing what is shown: above the bar on a terminal, as {"message":…} among
// lines of JSON. It may be called from any goroutine, after Stop too.
func (l *Live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.mu.bar != nil:
		return l.mu.bar.progress.Write(p)
	case l.opt.Progress == ProgressJSON:
		line, _ := json.Marshal(map[string]string{"message": strings.TrimRight(string(p), "\n")})
		if _, err := l.opt.Out.Write(append(line, '\n')); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return l.opt.Out.Write(p)
}

// frame is a snapshot with what follows from it and those before. Rates: per_s over the interval, per_s_phase over the phase
// so far; the ratios are over the phase so far.
type frame struct {
	TNs             int64      `json:"t_ns"`
	Phase           string     `json:"phase"`
	Done            int64      `json:"done"`
	Total           int64      `json:"total"`
	DoneRatio       *float64   `json:"done_ratio"`
	ETANs           *float64   `json:"eta_ns"`
	A               int64      `json:"a"`
	APerS           *float64   `json:"a_per_s"`
	Probes          int64      `json:"probes"`
	ProbesPerS      *float64   `json:"probes_per_s"`
	ProbesPerSPhase *float64   `json:"probes_per_s_phase"`
	Matches         int64      `json:"matches"`
	MatchRatio      *float64   `json:"match_ratio"`
	Pending         int64      `json:"pending"`
	LookupsPerProbe *float64   `json:"lookups_per_probe"`
	RSSBytes        int64      `json:"rss_bytes"`
	FPRatio         *float64   `json:"fp_ratio"` // of the filter, over the phase so far
	Open            *frameOpen `json:"open"`     // null in a closed loop
	Final           bool       `json:"final"`

	bare bool
}

// frameOpen is what there is to say of an open loop. Interval values are over the last half second or so.
type frameOpen struct {
	OfferedPerS           float64 `json:"offered_per_s"`
	Queue                 int64   `json:"queue"`
	Dropped               int64   `json:"dropped"`
	LagP99Ns              int64   `json:"lag_p99_ns_interval"`
	ResponseP50NsInterval int64   `json:"response_p50_ns_interval"`
	ResponseP99NsInterval int64   `json:"response_p99_ns_interval"`
	ResponseP50Ns         int64   `json:"response_p50_ns_phase"`
	ResponseP99Ns         int64   `json:"response_p99_ns_phase"`
}

// tracker turns snapshots into frames: it remembers the one before and the one at which the phase was first seen.
type tracker struct {
	start, last, phaseStart time.Time
	prev, base              Snapshot
}

func (t *tracker) next(s Snapshot, now time.Time) frame {
	fell := s.Probes < t.prev.Probes || s.A < t.prev.A || s.Matches < t.prev.Matches || s.Lookups < t.prev.Lookups
	if fell {
		t.prev = Snapshot{}
	}
	if fell || s.Phase != t.base.Phase {
		// The phase began somewhere in the interval: now if nothing of it is done, else as early as the look before.
		t.base, t.phaseStart = t.prev, t.last
		if s.Done == 0 && !fell {
			t.base, t.phaseStart = s, now
		}
		t.base.Phase = s.Phase
	}
	sec, phaseSec := now.Sub(t.last).Seconds(), now.Sub(t.phaseStart).Seconds()
	probes := s.Probes - t.base.Probes
	f := frame{
		TNs: now.Sub(t.start).Nanoseconds(), Phase: s.Phase, Done: s.Done, Total: s.Total,
		DoneRatio: Ratio(s.Done, s.Total), A: s.A, Probes: s.Probes, Matches: s.Matches, Pending: s.Pending, RSSBytes: s.RSSBytes, bare: s.Bare,
		APerS: RatioF(float64(s.A-t.prev.A), sec), ProbesPerS: RatioF(float64(s.Probes-t.prev.Probes), sec),
		ProbesPerSPhase: RatioF(float64(probes), phaseSec),
		MatchRatio:      Ratio(s.Matches-t.base.Matches, probes), LookupsPerProbe: Ratio(s.Lookups-t.base.Lookups, probes),
	}
	f.FPRatio = Ratio(s.FalsePositives-t.base.FalsePositives, s.AbsentQueries-t.base.AbsentQueries)
	if s.OfferedPerS > 0 {
		f.Open = &frameOpen{s.OfferedPerS, s.Queue, s.Dropped, s.LagP99Ns, s.RecentP50Ns, s.RecentP99Ns, s.ResponseP50Ns, s.ResponseP99Ns}
	}
	if s.Total > 0 && s.Done > 0 {
		f.ETANs = RatioF(phaseSec*1e9*float64(max(0, s.Total-s.Done)), float64(s.Done))
	}
	t.prev, t.last = s, now
	return f
}

// share is the percentage done, or the count where no total is known.
func (f *frame) share() string {
	if f.DoneRatio == nil {
		return Count(f.Done)
	}
	return fmt.Sprintf("%.1f %%", 100**f.DoneRatio)
}

// plain is the line for logs and pipes.
func (f *frame) plain() string {
	head := fmt.Sprintf("%-8s %s %s", nanos(f.TNs/1e9*1e9), f.Phase, f.share())
	if f.ETANs != nil && !f.Final {
		head += ", ETA " + Nanoseconds(*f.ETANs)
	}
	if f.Final {
		head += ", end"
	}
	return head + ": " + strings.Join(f.figures(true), ", ")
}

// figures are the parts that stand beside the bar, the most telling first; long ones have the rate over the phase too. The
// last frame has that alone, for the interval before the end may be as short as you like.
func (f *frame) figures(long bool) []string {
	var parts []string
	add := func(known bool, text string) {
		if known {
			parts = append(parts, text)
		}
	}
	now, mean := "B "+orDash(f.ProbesPerS, Rate), orDash(f.ProbesPerSPhase, Rate)
	switch {
	case f.Final:
		now = "B " + mean + when(long, " in phase")
	case long:
		now += " now, " + mean + " in phase"
	}
	add(f.Probes > 0, now)
	if o := f.Open; o != nil {
		add(true, "of "+Rate(o.OfferedPerS)+" offered")
		add(!f.Final && o.ResponseP99NsInterval > 0, fmt.Sprintf("response p50 %s p99 %s now", nanos(o.ResponseP50NsInterval), nanos(o.ResponseP99NsInterval)))
		add((long || f.Final) && o.ResponseP99Ns > 0, fmt.Sprintf("response p50 %s p99 %s in phase", nanos(o.ResponseP50Ns), nanos(o.ResponseP99Ns)))
		add(!f.Final, "lag p99 "+nanos(o.LagP99Ns)+" now")
		add(o.Queue > 0 && !f.Final, Count(o.Queue)+" waiting")
		add(o.Dropped > 0, Count(o.Dropped)+" dropped")
	}
	add(f.MatchRatio != nil && !f.bare, "match "+orDash(f.MatchRatio, Percent))
	add(long && !f.bare, "pending "+Count(f.Pending))
	add(!long && !f.bare, "pending "+strings.TrimSuffix(Rate(float64(f.Pending)), "/s"))
	add(f.LookupsPerProbe != nil && !f.bare, orDash(f.LookupsPerProbe, plain)+" lookups/B")
	add(f.FPRatio != nil, "FP "+orDash(f.FPRatio, Percent))
	add(f.RSSBytes > 0, "RSS "+Bytes(f.RSSBytes))
	add(f.APerS != nil && *f.APerS > 0 && !f.Final, "A "+orDash(f.APerS, Rate))
	return parts
}

// fitted is the figures in at most width characters: the short ones, and fewer of them, when there is no room.
func (f *frame) fitted(width int) string {
	const between = "  "
	if text := strings.Join(f.figures(true), between); utf8.RuneCountInString(text) <= width {
		return text
	}
	parts := f.figures(false)
	for i := range parts {
		parts[i] = strings.TrimRight(parts[i], " ")
	}
	for len(parts) > 0 {
		if text := strings.Join(parts, between); utf8.RuneCountInString(text) <= width {
			return text
		}
		parts = parts[:len(parts)-1]
	}
	return ""
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Terminal says how to write a text report to w: the width of the terminal and whether colours are welcome. What is not a
// terminal gets 100 columns and no colour.
func Terminal(w io.Writer) TextOptions {
	opt := TextOptions{Width: 100}
	if !isTerminal(w) {
		return opt
	}
	if width, _, err := term.GetSize(int(w.(*os.File).Fd())); err == nil && width > 0 {
		opt.Width = min(width, 120)
	}
	opt.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return opt
}
