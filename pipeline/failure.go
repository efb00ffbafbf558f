package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"joinbench/buckets"
	"joinbench/config"
)

// advice makes what Join and Bench return readable. Several tasks fail at the same moment and in the same words, and what is
// closed afterwards fails once more: it comes out as one line all the same, and of a full disk it says which one that is and
// what to do next.
type advice struct {
	dir  string
	temp bool
	// What to do when the disk of the state is full, and when that of an output is, if the path is one ("": standard output).
	state string
	out   func(path string) (todo string, ours bool)
}

// readable makes one line of an error; what it is can be asked as before.
func (a *advice) readable(err error) error {
	var conf *config.Error
	if err == nil || errors.As(err, &conf) || interrupted(err) {
		return err
	}
	var all []error
	full := false
	for _, e := range leaves(err) {
		if !buckets.DiskFull(e) {
			all = append(all, e)
		} else if !full { // the others are the same disk, or follow from it
			full = true
			all = slices.Insert(all, 0, a.fullDisk(e))
		}
	}
	if text := oneLine(all); text != err.Error() {
		return &failure{err, text}
	}
	return err
}

func (a *advice) fullDisk(err error) error {
	var at *fs.PathError
	if a.out != nil && errors.As(err, &at) {
		path := at.Path
		if path == "/dev/stdout" {
			path = ""
		}
		if todo, ours := a.out(path); ours {
			name := "output " + path
			if path == "" {
				name = "standard output"
			}
			return fmt.Errorf("the disk of %s is full: %s (%w)", name, todo, at)
		}
	}
	what, dir := "state directory", a.dir
	if a.temp {
		what = "temporary state directory"
	}
	if dir == "" { // it could not even be made
		dir = os.TempDir()
	}
	return fmt.Errorf("the disk of the %s %s is full: %s (%w)", what, dir, a.state, err)
}

// failure is an error with another text.
type failure struct {
	err  error
	text string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.err }

// leaves takes what errors.Join put together apart again.
func leaves(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	var texts []string
	for _, e := range joined.Unwrap() {
		texts = append(texts, e.Error())
		all = append(all, leaves(e)...)
	}
	if err.Error() != strings.Join(texts, "\n") { // it says more than its parts
		return []error{err}
	}
	return all
}

// oneLine lists errors, each text once.
func oneLine(all []error) string {
	var texts []string
	for _, e := range all {
		if text := strings.ReplaceAll(e.Error(), "\n", "; "); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

const goesOn = "free space and start the same command again: it goes on where it last committed"

// advice of a join.
func (jc *JoinConfig) advice(dir string) *advice {
	a := &advice{dir: dir, temp: jc.StateDir == "", state: goesOn}
	again := goesOn
	if a.temp {
		a.state = "free space, or name a directory on a larger disk with --state-dir, and start the same command again"
		again = "free space and start the same command again"
	}
	a.out = func(path string) (string, bool) {
		if path == "" {
			if a.temp {
				return again, true
			}
			return "free space and start the same command again: it goes on behind what it printed", true
		}
		return again, slices.Contains([]string{jc.Out, jc.Late, jc.Dead, jc.Unmatched, jc.Stats}, path)
	}
	return a
}

// advice of a benchmark.
func (bc *BenchConfig) advice(s *state) *advice {
	if s == nil {
		s = &state{dir: bc.Dir, temp: bc.Dir == ""}
	}
	a := &advice{dir: s.dir, temp: s.temp, state: goesOn}
	switch {
	case a.temp:
		a.state = "free space, or name a directory on a larger disk with --dir, and start the same command again"
	case !bc.Resume && s.hasTasks():
		a.state = "free space and start the same command again with --resume: it goes on where it last committed"
	}
	return a
}
