package buckets

import (
	"errors"
	"strings"
	"syscall"
)

// DiskFull says whether an error comes from a disk or a quota that is full. RocksDB hands its errors over as text, in which
// the system's own words stand.
func DiskFull(err error) bool {
	if err == nil {
		return false
	}
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, e) {
			return true
		}
	}
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "no space left on device") || strings.Contains(text, "disk quota exceeded")
}
