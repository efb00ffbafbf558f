package capture

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// spaceHint is what to do about a write that failed.
const spaceHint = "free space there, or choose another directory with --state-dir"

// spoolChunk is how much is copied between two looks at the context.
const spoolChunk = 1 << 20

// compression says by its suffix what a path holds: "gzip", "zstd" or "" for neither.
func compression(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".gz":
		return "gzip"
	case ".zst":
		return "zstd"
	}
	return ""
}

// decompress wraps src for the compression named. The closer is to be called when reading is over.
func decompress(src io.Reader, kind string) (io.Reader, func(), error) {
	switch kind {
	case "gzip":
		z, err := gzip.NewReader(bufio.NewReaderSize(src, spoolChunk))
		if err != nil {
			return nil, nil, err
		}
		return z, func() { _ = z.Close() }, nil
	case "zstd":
		z, err := zstd.NewReader(src)
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return src, func() {}, nil
}

// spool copies src, decompressed, into a file of the spool directory that can be read at any place. Without
// a name the file is unlinked at once: nothing is left behind however the process ends. With one it appears
// under that name when it is complete.
func spool(ctx context.Context, src io.Reader, what, kind string, o *OpenOptions) (*os.File, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the waiter
	r, done, err := decompress(newWaiter(ctx, src), kind)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, unreadable(what, kind, err)
	}
	defer done()
	create := unnamed
	if o.SpoolName != "" {
		create = os.CreateTemp
	}
	f, err := create(o.SpoolDir, "joinbench-spool-*")
	if err != nil {
		return nil, fmt.Errorf("spooling %s: %w; choose a directory that can be written with --state-dir", what, err)
	}
	if err = copyAll(ctx, f, r, what, kind); err == nil && o.SpoolName != "" {
		err = keep(f, filepath.Join(o.SpoolDir, o.SpoolName), what)
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name()) // gone already if unnamed or renamed
		return nil, err
	}
	return f, nil
}

func copyAll(ctx context.Context, f *os.File, r io.Reader, what, kind string) error {
	buf := make([]byte, spoolChunk)
	for {
		n, err := r.Read(buf)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("spooling %s: %w", what, err)
		}
		if n > 0 {
			if _, err := f.Write(buf[:n]); err != nil {
				return fmt.Errorf("spooling %s to %s: %w; %s", what, f.Name(), err, spaceHint)
			}
		}
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return unreadable(what, kind, err)
		}
	}
}

// keep gives a complete spool its name, durably: who finds the name finds all of its content.
func keep(f *os.File, path, what string) error {
	err := f.Sync()
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("spooling %s to %s: %w; %s", what, path, err, spaceHint)
	}
	return nil
}

func unreadable(what, kind string, err error) error {
	if kind == "" {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("reading %s: it ends inside the %s data: the file is cut off; copy it again", what, kind)
	}
	return fmt.Errorf("reading %s: it is not whole %s data: %w; the suffix says how a file is compressed", what, kind, err)
}

// unnamed makes a temporary file and takes its name away.
func unnamed(dir, pattern string) (*os.File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
