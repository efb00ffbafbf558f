package pipeline

import (
	"encoding/binary"
	"errors"
	"fmt"

	"joinbench/capture"
	"joinbench/core"
	"joinbench/projection"
)

// fileSink writes result lines and side outputs. The lengths of its files are in the commit record: on resume they
// are cut back to it.
type fileSink struct {
	rows
	topics  [2]string
	files   [4]sideFile // results, late, dead, unmatched
	text    []byte      // of a line for a side output
	outputs uint64      // lines written to the results
}

type sideFile struct {
	path string
	w    *capture.Writer // nil: not wanted
}

// plainSink is a file sink without files.
func plainSink(c *compiled, topics [2]string) *fileSink {
	s := &fileSink{rows: rows{lines: lines{spec: c.spec, key: c.key}, nulls: c.nulls}, topics: topics}
	s.to = s
	return s
}

func newFileSink(j *fileJoin) *fileSink {
	s := plainSink(j.c, [2]string{j.inputs[0].Topic(), j.inputs[1].Topic()})
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

// row implements outlet: the line, or the last part of one.
func (s *fileSink) row(r *row) error {
	s.outputs++
	_, err := s.files[toResults].w.Write(r.line)
	return err
}

// piece implements outlet.
func (s *fileSink) piece(line []byte) ([]byte, error) {
	_, err := s.files[toResults].w.Write(line)
	return line[:0], err
}

// wants implements outlet.
func (s *fileSink) wants(to int) bool { return s.files[to].w != nil }

// side implements outlet.
func (s *fileSink) side(to int, side core.Side, rec *projection.Record, reason string) error {
	s.text = capture.AppendSide(s.text[:0], s.topics[side], rec, reason)
	_, err := s.files[to].w.Write(s.text)
	return err
}
