package buckets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrInUse is wrapped by LockDir's error when another process holds the directory.
var ErrInUse = errors.New("data directory in use")

// DirLock is one process's claim on a data directory. The kernel lets go of it when the process ends, however.
type DirLock struct{ file *os.File }

// LockDir makes the directory if it is missing and locks it for this process; who says what holds it, for the
// error that the next one gets.
func LockDir(dir, who string) (*DirLock, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(f.Name())
		_ = f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("locking %s: %w", dir, err)
		}
		return nil, fmt.Errorf("%w: %s is held by %s; stop that one or give another directory", ErrInUse, dir, strings.TrimSpace(string(holder)))
	}
	text := fmt.Sprintf("process %d (%s)\n", os.Getpid(), who)
	if err := errors.Join(f.Truncate(0), writeAt(f, text)); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return &DirLock{f}, nil
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// Unlock lets go. The file stays: removing it would open a race between two that wait.
func (l *DirLock) Unlock() error { return l.file.Close() }
