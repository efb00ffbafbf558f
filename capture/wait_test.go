package capture

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
	"time"
)

// TestSilentInput: a pipe that says nothing does not hold up the end of the context, whatever it is thought to hold.
func TestSilentInput(t *testing.T) {
	for name, before := range map[string]string{"silent from the start": "", "silent in the middle": "{}\n{}\n"} {
		t.Run(name, func(t *testing.T) {
			in, feed := io.Pipe()
			defer feed.Close()
			ctx, cancel := context.WithCancel(context.Background())
			done, dir := make(chan error, 1), t.TempDir()
			go func() {
				_, err := OpenContext(ctx, OpenOptions{Path: "-", Stdin: in, SpoolDir: dir})
				done <- err
			}()
			if before != "" {
				if _, err := io.WriteString(feed, before); err != nil {
					t.Fatal(err)
				}
			}
			cancel()
			select {
			case err := <-done:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("error %v, want the context's", err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("still waiting for the pipe")
			}
		})
	}
}

// TestWaiterReadsAll: pieces of every size come through in order, and so does the error behind them.
func TestWaiterReadsAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	want := make([]byte, 3*spoolChunk+17)
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	broken := errors.New("broken")
	for name, r := range map[string]io.Reader{
		"whole":   bytes.NewReader(want),
		"halves":  iotest.HalfReader(bytes.NewReader(want)),
		"with it": iotest.DataErrReader(bytes.NewReader(want)),
	} {
		got, err := io.ReadAll(newWaiter(context.Background(), io.MultiReader(r, iotest.ErrReader(broken))))
		if !errors.Is(err, broken) || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes and error %v, want %d", name, len(got), err, len(want))
		}
	}
	if err := iotest.TestReader(newWaiter(context.Background(), bytes.NewReader(want[:5000])), want[:5000]); err != nil {
		t.Error(err)
	}
}
