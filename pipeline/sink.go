package pipeline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"joinbench/buckets"
	"joinbench/capture"
	"joinbench/core"
	"joinbench/projection"
)

// fileSink writes result lines and side outputs. The lengths of its files are in the commit record: on resume they
// are cut back to it.
type fileSink struct {
	spec    [2]*projection.Spec
	topics  [2]string
	files   [4]sideFile // results, late, dead, unmatched
	line    []byte
	outputs uint64
}

type sideFile struct {
	path string
	w    *capture.Writer // nil: not wanted
}

const (
	toResults = iota
	toLate
	toDead
	toUnmatched
)

func newFileSink(j *fileJoin) *fileSink {
	s := &fileSink{spec: j.c.spec, topics: [2]string{j.inputs[0].Topic(), j.inputs[1].Topic()}}
	for i, path := range []string{j.Out, j.Late, j.Dead, j.Unmatched} {
		s.files[i].path = path
	}
	if j.Out == "" || j.Out == "-" {
		s.files[toResults] = sideFile{path: "", w: capture.NewWriter(j.Stdout, "standard output")}
	}
	return s
}

// Restore implements core.Sink: it opens the files, new ones without a state, else cut back to it.
func (s *fileSink) Restore(state []byte) error {
	if len(state) != 0 && len(state) != 8*(1+len(s.files)) {
		return fmt.Errorf("commit record with %d bytes about outputs, expected %d", len(state), 8*(1+len(s.files)))
	}
	if len(state) != 0 {
		s.outputs = binary.LittleEndian.Uint64(state)
		state = state[8:]
	}
	for i := range s.files {
		f := &s.files[i]
		if f.path == "" {
			continue
		}
		var err error
		if len(state) == 0 {
			f.w, err = capture.Create(f.path)
		} else {
			f.w, err = capture.OpenResume(f.path, int64(binary.LittleEndian.Uint64(state[8*i:])))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// State implements core.Sink.
func (s *fileSink) State(dst []byte) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint64(dst, s.outputs)
	for i := range s.files {
		n := int64(0)
		if w := s.files[i].w; w != nil {
			if err := w.Flush(); err != nil {
				return nil, err
			}
			n = w.Bytes()
		}
		dst = binary.LittleEndian.AppendUint64(dst, uint64(n))
	}
	return dst, nil
}

// Sync implements core.Syncer.
func (s *fileSink) Sync() error {
	for i := range s.files {
		if w := s.files[i].w; w != nil {
			if err := w.Sync(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Results implements core.Sink.
func (s *fileSink) Results(out *core.Output) error {
	for i := range out.Matches {
		if err := s.pair(&out.Matches[i]); err != nil {
			return err
		}
	}
	for _, r := range out.Rejects {
		switch r.Fate {
		case core.Late, core.LateIdle:
			if err := s.side(toLate, r.Ref, r.Fate.String()); err != nil {
				return err
			}
		case core.Malformed, core.BadKey, core.BadTime:
			if err := s.side(toDead, r.Ref, r.Fate.String()); err != nil {
				return err
			}
		}
	}
	for _, r := range out.UnmatchedB {
		if err := s.side(toUnmatched, r, "unmatched"); err != nil {
			return err
		}
	}
	for _, raw := range out.UnmatchedA {
		if err := s.unmatchedA(raw); err != nil {
			return err
		}
	}
	return nil
}

// pair writes {"key":…,"ts":…,"a":{…},"b":{…}} (rule 23).
func (s *fileSink) pair(m *core.Match) error {
	a, err := buckets.ParseEntry(m.Entry)
	if err != nil {
		return err
	}
	line := append(s.line[:0], `{"key":`...)
	line = projection.AppendKey(line, a.Key)
	line = append(line, `,"ts":`...)
	line = strconv.AppendInt(line, max(a.Time, m.Chunk.Time[m.Row]), 10)
	line = append(line, `,"a":`...)
	line = s.spec[core.A].AppendOutput(line, a.Body)
	line = append(line, `,"b":`...)
	line = s.spec[core.B].AppendOutput(line, m.Chunk.BodyOf(m.Row))
	line = append(line, '}', '\n')
	s.line = line
	s.outputs++
	_, err = s.files[toResults].w.Write(line)
	return err
}

// side writes a record to a side output, if that is wanted.
func (s *fileSink) side(to int, r core.Ref, reason string) error {
	w := s.files[to].w
	if w == nil {
		return nil
	}
	s.line = capture.AppendSide(s.line[:0], s.topics[r.Chunk.Side], record(r), reason)
	_, err := w.Write(s.line)
	return err
}

// unmatchedA writes what the state keeps of an A: its join key, event time and stored body.
func (s *fileSink) unmatchedA(raw []byte) error {
	a, err := buckets.ParseEntry(raw)
	if err != nil {
		return err
	}
	rec := projection.Record{Key: a.Key[1:], Value: a.Body, Timestamp: a.Time, Partition: a.Partition, Offset: a.Offset}
	s.line = capture.AppendSide(s.line[:0], s.topics[core.A], &rec, "unmatched")
	_, err = s.files[toUnmatched].w.Write(s.line)
	return err
}

// finish makes sure that everything is in the files.
func (s *fileSink) finish() error {
	var errs []error
	for i := range s.files {
		if w := s.files[i].w; w != nil {
			errs = append(errs, w.Flush())
		}
	}
	return errors.Join(errs...)
}

func (s *fileSink) close() error {
	var errs []error
	for i := range s.files {
		if w := s.files[i].w; w != nil {
			errs = append(errs, w.Close())
		}
	}
	return errors.Join(errs...)
}
