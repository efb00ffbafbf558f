package results

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// ttyBar is a stack of bars, one for each phase, on a terminal. Only the goroutine of Live calls it, under Live's lock.
// The bars draw in goroutines of their own and read the last frame of their phase through an atomic pointer.
type ttyBar struct {
	progress *mpb.Progress
	refresh  chan any // one redraw for each frame; never blocks, a redraw that waits is as good as two
	bar      *mpb.Bar
	phase    string
	frame    *atomic.Pointer[frame]
	over     *atomic.Bool // another phase has followed: this one is done
}

func newTTYBar(out io.Writer) *ttyBar {
	b := &ttyBar{refresh: make(chan any, 1)}
	b.progress = mpb.New(mpb.WithOutput(out), mpb.ForceTTY(), mpb.WithManualRefresh(b.refresh))
	return b
}

func (b *ttyBar) show(f frame) {
	if b.bar == nil || f.Phase != b.phase {
		b.endPhase(true)
		if err := b.begin(f); err != nil { // the terminal is gone: the run goes on unwatched
			return
		}
	}
	b.frame.Store(&f)
	if f.Total > 0 {
		b.bar.SetTotal(f.Total, false)
	}
	b.bar.SetCurrent(f.Done)
	select {
	case b.refresh <- nil:
	default:
	}
}

// begin puts a new bar below those of the phases before. It fails when drawing has failed before.
func (b *ttyBar) begin(f frame) (err error) {
	latest := new(atomic.Pointer[frame])
	latest.Store(&f)
	over := new(atomic.Bool)
	b.frame, b.over, b.phase = latest, over, f.Phase
	// The total is set right away, but never completes the bar by itself: Live says when a phase is over.
	b.bar, err = b.progress.Add(0, mpb.BarStyle().Build(),
		mpb.BarWidth(40),
		mpb.PrependDecorators(
			decor.Name(f.Phase, decor.WC{W: 9, C: decor.DindentRight}),
			decor.Any(func(decor.Statistics) string {
				if over.Load() {
					return "     done "
				}
				return fmt.Sprintf("%9s ", latest.Load().share())
			}),
		),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string {
			switch f := latest.Load(); {
			case s.Completed || s.Aborted || f.Final || f.ETANs == nil:
				return ""
			default:
				return " ETA " + Nanoseconds(*f.ETANs)
			}
		})),
		mpb.BarExtender(mpb.BarFillerFunc(func(w io.Writer, s decor.Statistics) error {
			_, err := fmt.Fprintln(w, "  "+latest.Load().fitted(s.AvailableWidth-2))
			return err
		}), false),
	)
	return err
}

// endPhase leaves the bar as it stands at the end of the run; one that another phase has followed is done, whatever the last
// look at it said.
func (b *ttyBar) endPhase(followed bool) {
	if b.bar == nil {
		return
	}
	if followed {
		b.over.Store(true)
		b.bar.SetCurrent(b.frame.Load().Total)
	}
	b.bar.Abort(false)
	b.bar = nil
}

// close draws the last frame and ends all goroutines of the bars.
func (b *ttyBar) close() {
	b.endPhase(false)
	b.progress.Wait()
}
