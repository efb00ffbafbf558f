package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/zeebo/xxh3"

	"joinbench/projection"
)

// OpenOptions say what is opened and how. Only Path is required.
type OpenOptions struct {
	Path   string // file, pipe, or "-" for Stdin; .gz and .zst are decompressed
	Format Format // Auto decides by the first line that is not blank
	Topic  string // name of the topic where the file names none (Value, or no good line)

	SpoolDir  string    // existing directory for spools and large indexes; "" = the system's temporary one
	SpoolName string    // if set, a spool is kept in SpoolDir under this name (an older one is replaced)
	Stdin     io.Reader // nil = os.Stdin

	tuning tuning
}

// tuning holds the sizes that tests make small.
type tuning struct {
	window, maxLine   int
	run, page, memory int
}

func (t tuning) withDefaults() tuning {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&t.window, windowBytes)
	set(&t.maxLine, maxLineBytes)
	set(&t.run, runBytes)
	set(&t.page, pageBytes)
	set(&t.memory, indexBytes)
	return t
}

// Identity tells one content from another: its size in bytes and its xxh3, both after decompression. A run
// may be resumed when both are what they were.
type Identity struct {
	Size int64
	XXH3 uint64
}

// Input is a record file that was looked through once. It does not change any more: all methods may be
// called from any goroutine, but Close only when no cursor is in use.
type Input struct {
	path    string
	what    string // path for people
	f       *os.File
	spool   string // path of a kept spool, "" if none
	format  Format
	topic   string
	foreign int64
	id      Identity
	lines   int64
	index   runIndex
	tuning  tuning
}

// Open is OpenContext without a context.
func Open(o OpenOptions) (*Input, error) { return OpenContext(context.Background(), o) }

// OpenContext opens a record file, spools it if it cannot be read at any place, and reads all of it once.
// That takes as long as reading does; the context ends it early. Errors name the file and what to do;
// a malformed line is no error, it is a Damaged record.
func OpenContext(ctx context.Context, o OpenOptions) (*Input, error) {
	if o.SpoolDir == "" {
		o.SpoolDir = os.TempDir()
	}
	in := &Input{path: o.Path, what: o.Path, format: o.Format, topic: o.Topic, tuning: o.tuning.withDefaults()}
	in.index = runIndex{parts: map[int32]*partRuns{}, page: in.tuning.page, limit: in.tuning.memory, dir: o.SpoolDir}
	err := in.openFile(ctx, &o)
	if err == nil {
		err = in.measure()
	}
	if err == nil {
		err = in.firstPass(ctx)
	}
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	return in, nil
}

// openFile leaves in.f open on something that ReadAt works on.
func (in *Input) openFile(ctx context.Context, o *OpenOptions) error {
	if o.Path == "-" {
		in.what = "stdin"
		src := o.Stdin
		if src == nil {
			src = os.Stdin
		}
		return in.spoolFrom(ctx, src, "", o)
	}
	f, err := os.Open(o.Path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("input file %s does not exist; check the path (\"-\" reads stdin)", o.Path)
		}
		return fmt.Errorf("input file: %w", err)
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = errors.New("is a directory; name a file in it")
	}
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("input file %s: %w", o.Path, err)
	}
	kind := compression(o.Path)
	if kind == "" && st.Mode().IsRegular() {
		in.f = f
		return nil
	}
	defer f.Close()
	return in.spoolFrom(ctx, f, kind, o)
}

func (in *Input) spoolFrom(ctx context.Context, src io.Reader, kind string, o *OpenOptions) error {
	f, err := spool(ctx, src, in.what, kind, o)
	if err != nil {
		return err
	}
	in.f = f
	if o.SpoolName != "" {
		in.spool = filepath.Join(o.SpoolDir, o.SpoolName)
	}
	return nil
}

// measure takes the size and refuses what is compressed without saying so: as lines it would be nothing
// but malformed ones.
func (in *Input) measure() error {
	st, err := in.f.Stat()
	if err != nil {
		return fmt.Errorf("input file %s: %w", in.what, err)
	}
	in.id.Size = st.Size()
	head := make([]byte, 4)
	n, err := in.f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading %s: %w", in.what, err)
	}
	for magic, advice := range map[string]string{
		"\x1f\x8b":         "gzip data; give the file a name that ends in .gz, or pipe it through gzip -dc",
		"\x28\xb5\x2f\xfd": "zstd data; give the file a name that ends in .zst, or pipe it through zstd -dc",
	} {
		if bytes.HasPrefix(head[:n], []byte(magic)) {
			return fmt.Errorf("input file %s holds %s", in.what, advice)
		}
	}
	return nil
}

func (in *Input) reader() lineReader {
	return lineReader{
		f: in.f, path: in.what, size: in.id.Size,
		window: in.tuning.window, maxLine: in.tuning.maxLine,
	}
}

// firstPass finds format, runs, lines and hash.
func (in *Input) firstPass(ctx context.Context) error {
	if in.format == Auto {
		if err := in.detect(ctx); err != nil {
			return err
		}
	}
	p := pass{in: in, lines: in.reader(), most: int64(in.tuning.run)}
	p.lines.hash = xxh3.New()
	for pos := int64(0); pos < in.id.Size; {
		if in.lines%1024 == 0 && ctx.Err() != nil {
			return fmt.Errorf("reading %s: %w", in.what, ctx.Err())
		}
		line, after, cut, err := p.lines.next(pos, in.id.Size)
		if err != nil {
			return err
		}
		in.lines++
		if err := p.add(line, cut, pos, after); err != nil {
			return err
		}
		pos = after
	}
	in.id.XXH3 = p.lines.hash.Sum64()
	return in.index.finish()
}

// detect decides the format by the first line that is not blank; a file without one is Value.
func (in *Input) detect(ctx context.Context) error {
	in.format = Value
	r := in.reader()
	for pos := int64(0); pos < in.id.Size; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("reading %s: %w", in.what, err)
		}
		line, after, _, err := r.next(pos, in.id.Size)
		if err != nil {
			return err
		}
		if !blank(line) {
			in.format = detect(line)
			return nil
		}
		pos = after
	}
	return nil
}

// pass is the state of the first pass.
type pass struct {
	in    *Input
	lines lineReader
	most  int64 // bytes of a run
	env   envelope
	rec   projection.Record
	arena []byte
	part  *partRuns // of the line before
	named bool      // in.topic is the file's own
}

// add files a line under its partition.
func (p *pass) add(line []byte, cut bool, pos, after int64) error {
	partition := int32(0)
	if p.in.format != Value { // all lines of Value are partition 0: no need to look at them
		p.arena = p.env.record(&p.rec, p.in.format, line, cut, p.in.lines, p.arena[:0])
		partition = p.rec.Partition
		if !p.rec.Damaged {
			p.topic()
		}
		if cap(p.arena) > keepBytes { // after a long line
			p.arena = nil
		}
	}
	if p.part == nil || p.part.partition != partition {
		p.part = p.in.index.part(partition)
	}
	return p.in.index.extend(p.part, pos, after, p.in.lines, p.most)
}

// topic takes the name in the first good line, and counts those that differ.
func (p *pass) topic() {
	if !p.named {
		p.in.topic, p.named = string(p.env.topic), true
	} else if string(p.env.topic) != p.in.topic {
		p.in.foreign++
	}
}

// Path is the path as it was given.
func (in *Input) Path() string { return in.path }

// Format is the format of the lines, never Auto.
func (in *Input) Format() Format { return in.format }

// Topic is the topic in the file's first good line, else the one of the options.
func (in *Input) Topic() string { return in.topic }

// ForeignTopics counts the good lines that name another topic than Topic. They are read like the others.
func (in *Input) ForeignTopics() int64 { return in.foreign }

// Identity is size and hash of the content that is read, after decompression.
func (in *Input) Identity() Identity { return in.id }

// Lines counts all lines, damaged ones too.
func (in *Input) Lines() int64 { return in.lines }

// LinesOf counts the lines of one partition.
func (in *Input) LinesOf(partition int32) int64 {
	if p := in.index.parts[partition]; p != nil {
		return p.lines
	}
	return 0
}

// SpoolPath is where a spool was kept (OpenOptions.SpoolName), "" if there is none.
func (in *Input) SpoolPath() string { return in.spool }

// Partitions lists the partitions that have lines, ascending; DamagedPartition is the first where an
// envelope could not be read. The slice is the caller's.
func (in *Input) Partitions() []int32 {
	list := make([]int32, 0, len(in.index.parts))
	for p := range in.index.parts {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

// IsFile reports whether path is the very file that is being read, by whatever name: writing to it would
// destroy the input.
func (in *Input) IsFile(path string) bool {
	if in.path == "-" || path == "-" {
		return false
	}
	a, errA := os.Stat(in.path)
	b, errB := os.Stat(path)
	return errA == nil && errB == nil && a.Mode().IsRegular() && os.SameFile(a, b)
}

// Close closes the file. A kept spool stays.
func (in *Input) Close() error {
	var errs []error
	if in.f != nil {
		errs = append(errs, in.f.Close())
	}
	if in.index.file != nil {
		errs = append(errs, in.index.file.Close())
	}
	return errors.Join(errs...)
}
