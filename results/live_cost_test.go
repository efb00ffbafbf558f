package results

import (
	"io"
	"testing"
	"time"
)

// TestLiveViewIsCheap: a look at the run takes far less than a hundredth of the interval between two, in CPU time of the whole
// process: so the view cannot cost 1 % of one core, whatever the machine has to do besides.
func TestLiveViewIsCheap(t *testing.T) {
	if _, err := CPUTime(); err != nil {
		t.Skip("CPU time is not known here")
	}
	const looks, every = 200, time.Second
	for _, p := range []Progress{ProgressPlain, ProgressJSON, ProgressTTY} {
		read := openScript(time.Now().Add(-9 * time.Second))
		l := StartLive(LiveOptions{Progress: p, Out: io.Discard, Read: read, Every: time.Hour})
		mem := newMemReader()
		before, _ := CPUTime()
		for range looks {
			l.show(mem, false)
		}
		after, _ := CPUTime()
		mem.Close()
		l.Stop()
		each := (after - before) / looks
		t.Logf("%s: %v of CPU time a look", p, each)
		if each > every/200 {
			t.Errorf("%s: %v of CPU time a look, one each %v: more than half a per cent", p, each, every)
		}
	}
}
