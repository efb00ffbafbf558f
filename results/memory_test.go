package results

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestParseStatus(t *testing.T) {
	var m Memory
	m.parseStatus([]byte("Name:\tx\nVmRSS:\t  1720 kB\nRssAnon:\t     112 kB\nRssFile:\t    1608 kB\nRssShmem:\t       4 kB\nThreads:\t3\n"))
	if m.AnonBytes != 112*1024 || m.FileBytes != 1612*1024 || !m.RSSKnown {
		t.Errorf("read as %+v", m)
	}
	for _, text := range []string{"", "\nRssAnon:", "\nRssAnon: x kB\nRssFile: 1 kB", "\nRssAnon: 1 kB\n"} {
		var m Memory
		if m.parseStatus([]byte(text)); m != (Memory{}) {
			t.Errorf("%q read as %+v", text, m)
		}
	}
}

// The sampler sees peaks between two looks of its owner, and not what happens while it is paused.
func TestMemSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Pointer[Memory]
		set := func(anon, file, heap int64) {
			now.Store(&Memory{AnonBytes: anon, FileBytes: file, GoHeapBytes: heap, RSSKnown: true})
		}
		set(10, 500, 1)
		closed := 0
		s := startMemSampler(100*time.Millisecond, func() Memory { return *now.Load() }, func() { closed++ })
		step := func(d time.Duration, anon, file, heap int64) {
			set(anon, file, heap)
			time.Sleep(d)
			synctest.Wait()
		}
		check := func(name string, anon, file, heap int64) {
			t.Helper()
			if got := s.Peak(); got != (Memory{anon, file, heap, true}) {
				t.Errorf("%s: %+v", name, got)
			}
		}
		check("at the start", 10, 500, 1)
		step(100*time.Millisecond, 70, 20, 2)
		step(100*time.Millisecond, 30, 600, 3)
		check("greatest of each kind", 70, 600, 3)
		set(80, 0, 0)
		s.Pause() // what was before counts
		step(time.Second, 9000, 9000, 9000)
		check("paused", 80, 600, 3)
		if m := s.Sample(); m.AnonBytes != 9000 {
			t.Errorf("a sample while paused is %+v", m)
		}
		set(85, 1, 1)
		s.Resume()
		check("resumed", 85, 600, 3)
		s.ResetPeak()
		check("reset", 85, 1, 1)
		set(86, 1, 1)
		if got := s.Stop(); got.AnonBytes != 86 {
			t.Errorf("stopped at %+v", got)
		}
		set(99, 99, 99)
		if got := s.Stop(); got.AnonBytes != 86 || s.Sample().AnonBytes != 86 || closed != 1 {
			t.Errorf("stopped twice: %+v, closed %d times", got, closed)
		}
		s.ResetPeak()
		check("reset after the end", 86, 1, 1)
	})
}

func TestMemoryOfThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the split is read from /proc")
	}
	debug.FreeOSMemory() // or the block below may come from memory that earlier tests left resident
	s := StartMemSampler(10 * time.Millisecond)
	before := s.Sample()
	if !before.RSSKnown || before.AnonBytes == 0 || before.FileBytes == 0 || before.GoHeapBytes == 0 {
		t.Fatalf("a sample is %+v", before)
	}
	block := make([]byte, 64<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	peak := s.Stop()
	runtime.KeepAlive(block)
	if grown := peak.AnonBytes - before.AnonBytes; grown < 60<<20 {
		t.Errorf("64 MiB more show as %s more", Bytes(grown))
	}
	if grown := peak.GoHeapBytes - before.GoHeapBytes; grown < 60<<20 {
		t.Errorf("64 MiB more of heap show as %s more", Bytes(grown))
	}
	var c Cost
	c.SetMemory(peak)
	if *c.RSSMaxBytes != peak.AnonBytes || *c.RSSFileMaxBytes != peak.FileBytes || *c.GoHeapBytes != peak.GoHeapBytes {
		t.Errorf("in the cost it is %+v", c)
	}
	if c = (Cost{}); true {
		c.SetMemory(Memory{GoHeapBytes: 5})
		if c.RSSMaxBytes != nil || *c.GoHeapBytes != 5 {
			t.Errorf("what is not known is %+v", c)
		}
	}
}

// Watching must not show in the allocations of what is watched.
func TestMemReaderDoesNotAllocate(t *testing.T) {
	r := newMemReader()
	defer r.Close()
	r.read()
	if n := testing.AllocsPerRun(100, func() { r.read() }); n != 0 {
		t.Errorf("%v allocations a sample", n)
	}
}

// Work shows as CPU time, and no more of it than the cores can give.
func TestCPUTime(t *testing.T) {
	start := time.Now()
	before, err := CPUTime()
	if err != nil {
		t.Fatal(err)
	}
	for {
		after, err := CPUTime()
		wall := time.Since(start)
		if err != nil || after < before {
			t.Fatalf("went from %v to %v (%v)", before, after, err)
		}
		if used := after - before; used > wall*time.Duration(runtime.NumCPU())+20*time.Millisecond { // the kernel counts in ticks
			t.Fatalf("%v of CPU in %v", used, wall)
		} else if used > 30*time.Millisecond {
			return
		}
		if wall > 30*time.Second {
			t.Fatal("30 s of work take no CPU time")
		}
	}
}

func TestDirBytes(t *testing.T) {
	dir := t.TempDir()
	if n, err := DirBytes(filepath.Join(dir, "none")); n != 0 || err != nil {
		t.Errorf("a folder that is not there: %d, %v", n, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o777); err != nil {
		t.Fatal(err)
	}
	one := filepath.Join(dir, "a", "b", "one")
	f, err := os.Create(one)
	if err != nil {
		t.Fatal(err)
	}
	f.Write(make([]byte, 1<<20))
	f.Sync()                  // so that the file system has given it its blocks
	f.Truncate(1<<20 + 1<<30) // a hole takes no room
	f.Close()
	if err := os.Link(one, filepath.Join(dir, "again")); err != nil {
		t.Fatal(err)
	}
	n, err := DirBytes(dir)
	if err != nil || n < 1<<20 || n > 1<<20+64<<10 {
		t.Errorf("1 MiB with two names and a hole: %d, %v", n, err)
	}
}

func BenchmarkMemRead(b *testing.B) {
	r := newMemReader()
	defer r.Close()
	b.ReportAllocs()
	for b.Loop() {
		r.read()
	}
}

// TestMean: the average of what was sampled since the last call, whatever the peak did.
func TestMean(t *testing.T) {
	reads := []int64{10, 20, 60, 5, 15}
	s := startMemSampler(time.Hour, func() Memory {
		v := reads[0]
		reads = reads[1:]
		return Memory{AnonBytes: v, FileBytes: 2 * v, GoHeapBytes: 3 * v, RSSKnown: true}
	}, func() {})
	s.Sample()
	if got, want := s.Mean(), (Memory{AnonBytes: 30, FileBytes: 60, GoHeapBytes: 90, RSSKnown: true}); got != want {
		t.Errorf("mean of 10, 20 and 60: %+v", got)
	}
	if got := s.Mean().AnonBytes; got != 5 {
		t.Errorf("mean of 5: %d", got)
	}
	if peak := s.Stop().AnonBytes; peak != 60 {
		t.Errorf("peak %d", peak)
	}
}
