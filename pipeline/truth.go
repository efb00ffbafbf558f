package pipeline

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"joinbench/buckets"
	"joinbench/capture"
	"joinbench/core"
	"joinbench/loadgen"
)

// truthSink holds every pair against what the generator knows. In a directory that may be resumed it also keeps the
// pairs in a file, whose length is in the commit record, so that a resumed run is judged as a whole.
type truthSink struct {
	gen      *loadgen.Gen
	verifier *loadgen.Verifier
	path     string // of the pairs, "" without
	w        *capture.Writer
	line     [pairBytes]byte
	outputs  uint64
}

const (
	pairsFile = "pairs.bin" // u64 B index, u64 A index, little endian
	pairBytes = 16
)

func newTruthSink(gen *loadgen.Gen, dir string) *truthSink {
	s := &truthSink{gen: gen, verifier: gen.NewVerifier()}
	if dir != "" {
		s.path = filepath.Join(dir, pairsFile)
	}
	return s
}

// Restore implements core.Sink: it reads the committed pairs again.
func (s *truthSink) Restore(state []byte) (err error) {
	switch {
	case s.path == "":
		return nil
	case len(state) == 0:
		s.w, err = capture.Create(s.path)
		return err
	case len(state) != 8:
		return fmt.Errorf("commit record with %d bytes about pairs, expected 8", len(state))
	}
	length := int64(binary.LittleEndian.Uint64(state))
	if s.w, err = capture.OpenResume(s.path, length); err != nil {
		return err
	}
	data, err := os.ReadFile(s.path)
	if err != nil {
		return err
	}
	for ; len(data) >= pairBytes; data = data[pairBytes:] {
		s.verifier.Match(int64(binary.LittleEndian.Uint64(data)), int64(binary.LittleEndian.Uint64(data[8:])))
		s.outputs++
	}
	return nil
}

// State implements core.Sink.
func (s *truthSink) State(dst []byte) ([]byte, error) {
	if s.w == nil {
		return dst, nil
	}
	if err := s.w.Flush(); err != nil {
		return nil, err
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(s.w.Bytes())), nil
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
		s.verifier.Match(jb, ia)
		s.outputs++
		if s.w != nil {
			binary.LittleEndian.PutUint64(s.line[:], uint64(jb))
			binary.LittleEndian.PutUint64(s.line[8:], uint64(ia))
			if _, err := s.w.Write(s.line[:]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *truthSink) close() error {
	if s.w == nil {
		return nil
	}
	return s.w.Close()
}
