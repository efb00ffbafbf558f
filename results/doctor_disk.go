package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// diskProbe is how fast a directory's disk is.
type diskProbe struct {
	syncs           int
	median, longest time.Duration // of appending 4 KiB and syncing
	bytes           int64         // written in one go
	writing         time.Duration // of that, and its sync
}

const (
	probeSyncs = 20
	probeBytes = 32 << 20
)

// probeDisk writes and syncs a file in dir, and removes it and the folders that it had to make.
func probeDisk(dir string) (p diskProbe, err error) {
	made := missingFolders(dir)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return p, err
	}
	defer func() {
		for _, d := range made { // the innermost first
			_ = os.Remove(d)
		}
	}()
	f, err := os.CreateTemp(dir, ".joinbench-doctor-*")
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * i >> 7) // what is all zeros some disks do not write
	}
	times := make([]time.Duration, 0, probeSyncs)
	for range probeSyncs {
		start := time.Now()
		if err := writeAndSync(f, block[:4096], 1); err != nil {
			return p, err
		}
		times = append(times, time.Since(start))
	}
	start := time.Now()
	if err := writeAndSync(f, block, probeBytes/len(block)); err != nil {
		return p, err
	}
	p = diskProbe{syncs: probeSyncs, bytes: probeBytes, writing: time.Since(start)}
	slices.Sort(times)
	p.median, p.longest = times[len(times)/2], times[len(times)-1]
	return p, nil
}

func writeAndSync(f *os.File, block []byte, times int) error {
	for range times {
		if _, err := f.Write(block); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return f.Sync()
}

// missingFolders lists what would have to be made for dir to exist, the innermost first.
func missingFolders(dir string) (missing []string) {
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return missing
		}
		missing = append(missing, dir)
		dir = filepath.Dir(dir)
	}
}
