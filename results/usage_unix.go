//go:build unix

package results

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"
)

// CPUTime is the time that all threads of the process have spent on a CPU, in user and in system mode, since its start.
func CPUTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// DirBytes is the disk space that the files below dir occupy (blocks, not lengths; a file with two names counts once). Files
// that vanish while it looks are passed over; a dir that is not there has 0 bytes.
func DirBytes(dir string) (int64, error) {
	type inode struct{ dev, ino uint64 }
	seen := map[inode]bool{}
	total := int64(0)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.Type().IsRegular() {
			return nil
		}
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			total += info.Size()
			return nil
		}
		if id := (inode{uint64(st.Dev), uint64(st.Ino)}); !seen[id] {
			seen[id] = true
			total += int64(st.Blocks) * 512
		}
		return nil
	})
	return total, err
}

// processLimits is how many files the process may hold open.
func processLimits() (files uint64, ok bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return uint64(l.Cur), true
}
