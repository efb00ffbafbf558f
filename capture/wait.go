package capture

import (
	"context"
	"io"
)

// waiter reads from a source that may be silent for ever, a pipe or a terminal, and gives up when its context ends. The
// goroutine that waits in the source then stays behind until that speaks: it is for a process that is about to end.
type waiter struct {
	ctx    context.Context
	pieces chan piece
	free   chan []byte
	at     piece
	rest   []byte // of the piece at hand
}

type piece struct {
	data []byte
	err  error // of the source, behind data
}

func newWaiter(ctx context.Context, src io.Reader) *waiter {
	w := &waiter{ctx: ctx, pieces: make(chan piece), free: make(chan []byte, 2)}
	for range cap(w.free) {
		w.free <- make([]byte, spoolChunk)
	}
	go w.run(src)
	return w
}

func (w *waiter) run(src io.Reader) {
	for {
		buf := <-w.free // of the two, one is here or comes before the other is asked for again
		n, err := src.Read(buf)
		select {
		case w.pieces <- piece{buf[:n], err}:
		case <-w.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (w *waiter) Read(p []byte) (int, error) {
	for len(w.rest) == 0 {
		if w.at.err != nil {
			return 0, w.at.err
		}
		if w.at.data != nil {
			w.free <- w.at.data[:cap(w.at.data)]
		}
		select {
		case w.at = <-w.pieces:
			w.rest = w.at.data
		case <-w.ctx.Done():
			w.at = piece{err: w.ctx.Err()}
		}
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}
