package capture

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeBytes is how much a Writer gathers. 256 KiB make the system call vanish beside the lines in it.
const writeBytes = 256 << 10

// Writer is the buffered end of an output: a file, or any io.Writer such as stdout. One goroutine at a time.
// After an error each further call answers it again: a file with a hole is worse than a short one.
//
// To commit: Flush (then Sync where it must outlive the machine), then note Bytes. To resume: OpenResume with
// the Bytes noted.
type Writer struct {
	name    string
	w       io.Writer
	f       *os.File // nil: not ours to sync, cut or close
	regular bool     // f can be synced and cut
	fresh   bool     // f's name may not be on disk yet; Sync's own
	buf     []byte
	bytes   int64
	err     error
}

// NewWriter writes to w, named in errors, from length 0. It does not close w.
func NewWriter(w io.Writer, name string) *Writer {
	return &Writer{name: name, w: w, buf: make([]byte, 0, writeBytes)}
}

// Create opens a file for a new run and empties it; "-" is stdout.
func Create(path string) (*Writer, error) {
	if path == "-" {
		return NewWriter(os.Stdout, "stdout"), nil
	}
	return open(path, os.O_CREATE|os.O_TRUNC)
}

// OpenResume opens the output of an unfinished run and cuts it back to the length of the last commit: what
// lies beyond was written, but not committed, and will be written again. A file that is shorter than that,
// or that cannot be cut (stdout, a pipe), is an error unless length is 0.
func OpenResume(path string, length int64) (*Writer, error) {
	if length == 0 {
		return Create(path)
	}
	if path == "-" {
		return nil, cannotCut("stdout", length)
	}
	w, err := open(path, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("output %s is gone, the unfinished run had committed %d bytes of it; "+
				"put it back, or remove the state directory to start anew", path, length)
		}
		return nil, err
	}
	if err := w.cut(length); err != nil {
		_ = w.f.Close()
		return nil, err
	}
	return w, nil
}

func open(path string, flags int) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|flags, 0o644)
	if err != nil {
		return nil, fmt.Errorf("output file: %w; its directory must exist and be writable", err)
	}
	st, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("output file: %w", err)
	}
	w := NewWriter(f, path)
	w.f, w.regular, w.fresh = f, st.Mode().IsRegular(), true
	return w, nil
}

// cut leaves the first length bytes of the file and goes on behind them.
func (w *Writer) cut(length int64) error {
	if !w.regular {
		return cannotCut(w.name, length)
	}
	end, err := w.f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("output file: %w", err)
	}
	if end < length {
		return fmt.Errorf("output %s holds %d bytes, the unfinished run had committed %d: it was changed; "+
			"put it back, or remove the state directory to start anew", w.name, end, length)
	}
	if err := w.f.Truncate(length); err != nil {
		return fmt.Errorf("output file: %w", err)
	}
	if _, err := w.f.Seek(length, io.SeekStart); err != nil {
		return fmt.Errorf("output file: %w", err)
	}
	w.bytes = length
	return nil
}

func cannotCut(name string, length int64) error {
	return fmt.Errorf("output %s cannot be cut back to the %d bytes that the unfinished run had committed; "+
		"a run that is to be resumed must write to a file; remove the state directory to start anew", name, length)
}

// Write takes whole lines. They are copied; lines of one call reach the file together unless they are
// longer than the buffer.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err == nil && len(w.buf)+len(p) > cap(w.buf) {
		_ = w.Flush() // its error is kept
	}
	if w.err != nil {
		return 0, w.err
	}
	if len(p) > cap(w.buf) {
		return w.put(p)
	}
	w.buf = append(w.buf, p...)
	return len(p), nil
}

// Flush hands everything to the operating system.
func (w *Writer) Flush() error {
	if w.err == nil && len(w.buf) > 0 {
		_, _ = w.put(w.buf) // its error is kept
		w.buf = w.buf[:0]
	}
	return w.err
}

func (w *Writer) put(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.bytes += int64(n)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		advice := ""
		if w.regular {
			advice = "; mend that and start the same run again: it goes on where it last committed"
		}
		w.err = fmt.Errorf("output %s after %d bytes: %w%s", w.name, w.bytes, err, advice)
	}
	return n, w.err
}

// Bytes is the length of the output: what was flushed, with what was there when it was opened. Lines that
// are still buffered do not count.
func (w *Writer) Bytes() int64 { return w.bytes }

// Sync makes what was flushed, and the file's name, outlive a power cut. It may be called beside Write and Flush, not
// beside itself or Close. For what is no regular file there is nothing to do.
func (w *Writer) Sync() error {
	if !w.regular {
		return nil
	}
	err := w.f.Sync()
	if err == nil && w.fresh {
		err = syncDir(filepath.Dir(w.name))
		w.fresh = err != nil
	}
	if err != nil {
		return fmt.Errorf("output %s: making it durable: %w", w.name, err)
	}
	return nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Close flushes and closes what Create or OpenResume opened. It answers the first error of all.
func (w *Writer) Close() error {
	err := w.Flush()
	if w.f == nil {
		return err
	}
	if e := w.f.Close(); e != nil && err == nil {
		err = fmt.Errorf("output %s: %w", w.name, e)
		w.err = err
	}
	w.f, w.regular = nil, false
	return err
}
