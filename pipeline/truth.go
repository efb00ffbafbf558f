package pipeline

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"joinbench/buckets"
	"joinbench/capture"
	"joinbench/core"
	"joinbench/loadgen"
)

// truthSink holds every pair against what the generator knows. In a directory that may be resumed it also keeps the
// pairs in a file, whose length is in the commit record, so that a resumed run is judged as a whole.
//
// A file that has grown to pairsRoll is followed by another one, which begins with what the verifier knows by then. So
// neither the disk nor the time to read it again grow with the run.
type truthSink struct {
	gen      *loadgen.Gen
	verifier *loadgen.Verifier
	dir      string // of the pairs, "" without
	roll     int64  // bytes of pairs after which another file begins
	w        *capture.Writer
	number   uint64 // of the file
	head     uint64 // bytes in front of its pairs
	over     string // file before it: goes when a commit has named this one
	line     [pairBytes]byte
	outputs  uint64

	restored time.Time // when Restore was called: the rings were open
}

const (
	pairsFile = "pairs.bin" // head, if it is not the first; then u64 B index, u64 A index, little endian
	pairBytes = 16
	pairsRoll = pairBytes << 18 // 4 MiB: read again in a tenth of a second
	pairsMark = 24              // bytes in the commit record: number, head, length
)

func newTruthSink(gen *loadgen.Gen, dir string) *truthSink {
	return &truthSink{gen: gen, verifier: gen.NewVerifier(), dir: dir, roll: pairsRoll}
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

// removeOthers removes the files that the commit record does not name.
func (s *truthSink) removeOthers() error {
	files, err := os.ReadDir(s.dir)
	for _, f := range files {
		path := filepath.Join(s.dir, f.Name())
		if strings.HasPrefix(f.Name(), pairsFile) && path != s.path(s.number) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
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
		switch _, err := io.ReadFull(in, s.line[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		s.verifier.Match(int64(binary.LittleEndian.Uint64(s.line[:])), int64(binary.LittleEndian.Uint64(s.line[8:])))
		s.outputs++
	}
}

// State implements core.Sink.
func (s *truthSink) State(dst []byte) ([]byte, error) {
	if s.w == nil {
		return dst, nil
	}
	if s.over != "" { // the last commit named the file that followed it
		if err := os.Remove(s.over); err != nil {
			return nil, err
		}
		s.over = ""
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
	err = s.w.Close()
	s.over = s.path(s.number)
	s.w, s.number, s.head = w, s.number+1, uint64(len(head))
	return err
}

// Sync implements core.Syncer.
func (s *truthSink) Sync() error {
	if s.w == nil {
		return nil
	}
	return s.w.Sync()
}

// Results implements core.Sink.
func (s *truthSink) Results(out *core.Output) error {
	for i := range out.Matches {
		m := &out.Matches[i]
		a, err := buckets.ParseEntry(m.Entry)
		if err != nil {
			return err
		}
		ia, okA := s.gen.IndexA(a.Partition, a.Offset)
		jb, okB := s.gen.IndexB(m.Chunk.Partition, m.Chunk.Offset[m.Row])
		if !okA || !okB {
			ia, jb = -1, -1 // no record of ours: the verifier calls it spurious
		}
		if err := s.pair(jb, ia); err != nil {
			return err
		}
	}
	return nil
}

func (s *truthSink) pair(jb, ia int64) error {
	s.verifier.Match(jb, ia)
	s.outputs++
	if s.w == nil {
		return nil
	}
	binary.LittleEndian.PutUint64(s.line[:], uint64(jb))
	binary.LittleEndian.PutUint64(s.line[8:], uint64(ia))
	_, err := s.w.Write(s.line[:])
	return err
}

func (s *truthSink) close() error {
	if s.w == nil {
		return nil
	}
	return s.w.Close()
}
