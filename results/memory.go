package results

import (
	"bytes"
	"os"
	"runtime/metrics"
	"sync"
	"time"
)

// Memory is the process's resident memory by kind, in bytes. Anonymous is what the process itself asked for (the Go heap,
// RocksDB's memory); File is what is mapped from files and can be read again (table files, the program, tmpfs).
type Memory struct {
	AnonBytes   int64
	FileBytes   int64
	GoHeapBytes int64 // objects of the Go heap, living or not yet swept
	RSSKnown    bool  // false where the system does not tell: AnonBytes and FileBytes are 0 then
}

// memReader reads Memory again and again without allocating, so that watching does not show in the allocation counts of
// what is watched. For one goroutine.
type memReader struct {
	status *os.File // /proc/self/status, nil where there is none
	buf    [4096]byte
	heap   []metrics.Sample
}

func newMemReader() *memReader {
	r := &memReader{heap: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
	r.status, _ = os.Open("/proc/self/status")
	return r
}

func (r *memReader) Close() {
	if r.status != nil {
		r.status.Close()
	}
}

// read takes one sample: about 20 µs. smaps_rollup would be exact to the page, but walks all page tables under a lock that
// the measured goroutine needs for its own page faults.
func (r *memReader) read() Memory {
	metrics.Read(r.heap)
	m := Memory{GoHeapBytes: int64(r.heap[0].Value.Uint64())}
	if r.status == nil {
		return m
	}
	n, _ := r.status.ReadAt(r.buf[:], 0) // at the end io.EOF, with what there is
	m.parseStatus(r.buf[:n])
	return m
}

// parseStatus takes RssAnon, RssFile and RssShmem from the text of /proc/self/status.
func (m *Memory) parseStatus(text []byte) {
	anon, ok1 := statusKB(text, "\nRssAnon:")
	file, ok2 := statusKB(text, "\nRssFile:")
	shmem, _ := statusKB(text, "\nRssShmem:")
	if ok1 && ok2 {
		m.AnonBytes, m.FileBytes, m.RSSKnown = anon, file+shmem, true
	}
}

// statusKB gives the bytes in a line "Name:   123 kB".
func statusKB(text []byte, name string) (int64, bool) {
	at := bytes.Index(text, []byte(name))
	if at < 0 {
		return 0, false
	}
	n, digits := int64(0), 0
	for _, c := range text[at+len(name):] {
		if c >= '0' && c <= '9' {
			n, digits = n*10+int64(c-'0'), digits+1
		} else if digits > 0 {
			break
		} else if c != ' ' && c != '\t' {
			return 0, false
		}
	}
	return n * 1024, digits > 0
}

// ReadMemory takes one sample of the process.
func ReadMemory() Memory {
	r := newMemReader()
	defer r.Close()
	return r.read()
}

// MemSampler keeps the peak of each kind of memory. All methods may be called from any goroutine.
type MemSampler struct {
	stop chan struct{}
	done chan struct{}
	mu   struct {
		sync.Mutex
		read   func() Memory // sample under the lock: the reader is for one goroutine
		close  func()
		peak   Memory
		sum    Memory // of the samples since the last Mean
		n      int64
		paused bool
		ended  bool
	}
}

// StartMemSampler starts a goroutine that samples now and every interval (0 = 100 ms) until Stop.
func StartMemSampler(every time.Duration) *MemSampler {
	r := newMemReader()
	return startMemSampler(every, r.read, r.Close)
}

func startMemSampler(every time.Duration, read func() Memory, closeReader func()) *MemSampler {
	if every <= 0 {
		every = 100 * time.Millisecond
	}
	s := &MemSampler{stop: make(chan struct{}), done: make(chan struct{})}
	s.mu.read, s.mu.close = read, closeReader
	s.Sample()
	go s.run(every)
	return s
}

func (s *MemSampler) run(every time.Duration) {
	defer close(s.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.Sample()
		case <-s.stop:
			return
		}
	}
}

// Sample takes a sample now, counts it for the peak unless paused, and returns it. After Stop it returns the peak.
func (s *MemSampler) Sample() Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sampleLocked()
}

func (s *MemSampler) sampleLocked() Memory {
	if s.mu.ended {
		return s.mu.peak
	}
	m := s.mu.read()
	if s.mu.paused {
		return m
	}
	s.mu.sum.AnonBytes += m.AnonBytes
	s.mu.sum.FileBytes += m.FileBytes
	s.mu.sum.GoHeapBytes += m.GoHeapBytes
	s.mu.sum.RSSKnown = m.RSSKnown
	s.mu.n++
	p := &s.mu.peak
	p.AnonBytes = max(p.AnonBytes, m.AnonBytes)
	p.FileBytes = max(p.FileBytes, m.FileBytes)
	p.GoHeapBytes = max(p.GoHeapBytes, m.GoHeapBytes)
	p.RSSKnown = p.RSSKnown || m.RSSKnown
	return m
}

// Pause leaves what follows out of the peak (what came before is sampled first), until Resume. Who allocates in between,
// as the measuring of the unit does, gives the memory back to the system (debug.FreeOSMemory) before Resume.
func (s *MemSampler) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sampleLocked()
	s.mu.paused = true
}

// Resume ends Pause.
func (s *MemSampler) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.paused = false
	s.sampleLocked()
}

// ResetPeak forgets the peak so far, for instance when measuring starts.
func (s *MemSampler) ResetPeak() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.ended {
		s.mu.peak = Memory{}
		s.sampleLocked()
	}
}

// Peak returns the greatest of each kind so far (not all at one moment).
func (s *MemSampler) Peak() Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.peak
}

// Mean takes a sample and returns the average of those since the last call (or the start). A heap goes up and down like a
// saw several times a second: samples of single moments need hours to show whether the saw itself rises.
func (s *MemSampler) Mean() Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.sampleLocked()
	sum, n := s.mu.sum, s.mu.n
	s.mu.sum, s.mu.n = Memory{}, 0
	if n == 0 {
		return last
	}
	return Memory{AnonBytes: sum.AnonBytes / n, FileBytes: sum.FileBytes / n, GoHeapBytes: sum.GoHeapBytes / n, RSSKnown: sum.RSSKnown}
}

// Stop takes a last sample, ends the goroutine, and returns the peak. Further calls return the same peak.
func (s *MemSampler) Stop() Memory {
	s.mu.Lock()
	if !s.mu.ended {
		s.sampleLocked()
		s.mu.ended = true
		close(s.stop)
		s.mu.close()
	}
	peak := s.mu.peak
	s.mu.Unlock()
	<-s.done
	return peak
}

// SetMemory puts a peak into the cost; what is not known stays null.
func (c *Cost) SetMemory(peak Memory) {
	c.GoHeapBytes = new(peak.GoHeapBytes)
	if peak.RSSKnown {
		c.RSSMaxBytes, c.RSSFileMaxBytes = new(peak.AnonBytes), new(peak.FileBytes)
	}
}
