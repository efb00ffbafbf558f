package pipeline

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"joinbench/capture"
	"joinbench/loadgen"
)

// truthSink holds every line of the results against what the generator knows. In a directory that may be resumed it also keeps
// the lines in a file, whose length is in the commit record, so that a resumed run is judged as a whole.
//
// A file that has grown to pairsRoll is followed by another one, which begins with what the verifier knows by then. So
// neither the disk nor the time to read it again grow with the run.
type truthSink struct {
	gen      *loadgen.Gen
	verifier *loadgen.Verifier
	dir      string  // of the pairs, "" without
	durable  bool    // Sync is called
	roll     int64   // bytes of pairs after which another file begins
	number   uint64  // of the file
	head     uint64  // bytes in front of its pairs
	out      []byte  // scratch: a line's form,
	members  []int64 // and the B of a group
	outputs  uint64
	skipped  *skippedPairs // of an open loop that drops B, else nil

	mu   sync.Mutex // guards what follows: Sync is called beside the rest, which changes it
	w    *capture.Writer
	past []pastPairs

	restored time.Time // when Restore was called: the rings were open
}

// pastPairs is a file that another one followed. It goes when no power cut can bring back a commit that names it: after a
// Sync that began when a commit had named its successor, and the sync of the log that comes with it, which the next Sync
// proves.
type pastPairs struct {
	path  string
	w     *capture.Writer // nil: of an earlier life
	stage pastStage
}

type pastStage uint8

const (
	followed  pastStage = iota
	committed           // a commit has named its successor
	synced              // and a Sync has begun since
)

const (
	pairsFile = "pairs.bin" // head, if it is not the first; then lines (truth_lines.go)
	pairBytes = 16
	pairsRoll = pairBytes << 18 // 4 MiB: read again in a tenth of a second
	pairsMark = 24              // bytes in the commit record: number, head, length
)

// newTruthSink keeps the lines in a directory, if it has a name. Durable says that Sync is called.
func newTruthSink(gen *loadgen.Gen, truth *loadgen.Truth, dir string, durable bool) *truthSink {
	return &truthSink{gen: gen, verifier: truth.NewVerifier(), dir: dir, durable: durable, roll: pairsRoll}
}

// path of a file of pairs: pairs.bin, pairs.bin.1 …
func (s *truthSink) path(number uint64) string {
	if number == 0 {
		return filepath.Join(s.dir, pairsFile)
	}
	return filepath.Join(s.dir, fmt.Sprintf("%s.%d", pairsFile, number))
}

// Restore implements core.Sink: it reads the committed pairs again.
func (s *truthSink) Restore(state []byte) error {
	s.restored = time.Now()
	if s.dir == "" {
		return nil
	}
	if len(state) != 0 && len(state) != pairsMark {
		return fmt.Errorf("commit record with %d bytes about pairs, expected %d", len(state), pairsMark)
	}
	var length int64
	if len(state) != 0 {
		s.number, s.head = binary.LittleEndian.Uint64(state), binary.LittleEndian.Uint64(state[8:])
		length = int64(binary.LittleEndian.Uint64(state[16:]))
	}
	if err := s.removeOthers(); err != nil {
		return err
	}
	var err error
	if s.w, err = capture.OpenResume(s.path(s.number), length); err != nil || length == 0 {
		return err
	}
	return s.read()
}

// removeOthers removes the files that the commit record does not name. A power cut may bring back one that names an earlier
// file: that one stays for now.
func (s *truthSink) removeOthers() error {
	files, err := os.ReadDir(s.dir)
	for _, f := range files {
		path := filepath.Join(s.dir, f.Name())
		number, ours := pairsNumber(f.Name())
		switch {
		case !ours || number == s.number:
		case s.durable && number < s.number:
			s.past = append(s.past, pastPairs{path: path, stage: committed})
		default:
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// pairsNumber is the number in the name of a file of pairs.
func pairsNumber(name string) (number uint64, ours bool) {
	if name == pairsFile {
		return 0, true
	}
	digits, ours := strings.CutPrefix(name, pairsFile+".")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, ours && err == nil
}

// read takes in what is in the file.
func (s *truthSink) read() error {
	f, err := os.Open(s.path(s.number))
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<18)
	if s.head > 0 {
		head := make([]byte, s.head)
		if _, err := io.ReadFull(in, head); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		s.outputs = binary.LittleEndian.Uint64(head)
		if err := s.verifier.SetState(head[8:]); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	for {
		var l resultLine
		l, s.members, err = readLine(in, s.members)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		s.judge(&l)
	}
}

// State implements core.Sink.
func (s *truthSink) State(dst []byte) ([]byte, error) {
	if s.w == nil {
		return dst, nil
	}
	if err := s.commitPast(); err != nil {
		return nil, err
	}
	if err := s.w.Flush(); err != nil {
		return nil, err
	}
	if s.w.Bytes()-int64(s.head) >= s.roll {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	for _, n := range []uint64{s.number, s.head, uint64(s.w.Bytes())} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	return dst, nil
}

// next begins another file with what is known.
func (s *truthSink) next() error {
	w, err := capture.Create(s.path(s.number + 1))
	if err != nil {
		return err
	}
	head := s.verifier.AppendState(binary.LittleEndian.AppendUint64(nil, s.outputs))
	_, err = w.Write(head)
	if err = errors.Join(err, w.Flush()); err != nil {
		return errors.Join(err, w.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = append(s.past, pastPairs{path: s.path(s.number), w: s.w})
	s.w, s.number, s.head = w, s.number+1, uint64(len(head))
	return nil
}

// commitPast notes that the last State is committed. Where nothing is synced, that is all there is to wait for.
func (s *truthSink) commitPast() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.past[:0]
	for _, p := range s.past {
		p.stage = max(p.stage, committed)
		if s.durable {
			kept = append(kept, p)
		} else {
			err = errors.Join(err, p.remove())
		}
	}
	s.past = kept
	return err
}

func (p *pastPairs) remove() error { return errors.Join(p.close(), os.Remove(p.path)) }

func (p *pastPairs) close() error {
	if p.w == nil {
		return nil
	}
	return p.w.Close()
}

// Sync implements core.Syncer.
func (s *truthSink) Sync() error {
	writers, err := s.syncPast()
	for _, w := range writers {
		err = errors.Join(err, w.Sync())
	}
	return err
}

// syncPast removes the files that have no use any more, and lists the writers of the others.
func (s *truthSink) syncPast() (writers []*capture.Writer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.past[:0]
	for _, p := range s.past {
		if p.stage == synced {
			err = errors.Join(err, p.remove())
			continue
		}
		if p.stage == committed {
			p.stage = synced
		}
		if p.w != nil {
			writers = append(writers, p.w)
		}
		kept = append(kept, p)
	}
	s.past = kept
	if s.w != nil {
		writers = append(writers, s.w)
	}
	return writers, err
}

func (s *truthSink) close() error {
	var errs []error
	for _, p := range s.past {
		errs = append(errs, p.close())
	}
	if s.w != nil {
		errs = append(errs, s.w.Close())
	}
	return errors.Join(errs...)
}
