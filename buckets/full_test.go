package buckets

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

func TestDiskFull(t *testing.T) {
	for err, want := range map[error]bool{
		nil:            false,
		syscall.ENOSPC: true,
		&fs.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}:                                                      true,
		fmt.Errorf("a: %w", errors.Join(syscall.EIO, syscall.ENOSPC)):                                                   true,
		errors.New("IO error: No space left on device: While appending to file: d/000004.log: No space left on device"): true,
		errors.New("IO error: While fsync: d/000004.log: Disk quota exceeded"):                                          true,
		errors.New("IO error: While fsync: d/000004.log: Input/output error"):                                           false,
		syscall.EIO: false,
	} {
		if DiskFull(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}
