package pipeline

import (
	"joinbench/buckets"
	"joinbench/results"
)

// storage is what joining cost the disk, and how long the store held it up. bytesA are keys and bodies of the A. A file
// system in memory has no device, and the kernel counts nothing for it.
func (m *meter) storage(stalls *buckets.Stalls, bytesA int64, fs string) results.Storage {
	s := results.Storage{PendingCompactionBytes: new(stalls.Pending),
		StallRatio: ratio(stalls.Time.Seconds(), m.last.at.Sub(m.b.opening).Seconds())}
	from, to := m.io[0], m.io[1]
	if !from.Known || !to.Known || fs == "tmpfs" || fs == "ramfs" {
		return s
	}
	s.BytesRead, s.BytesWritten = new(to.Read-from.Read), new(to.Written-from.Written)
	s.WriteAmp = ratio(float64(*s.BytesWritten), float64(bytesA))
	return s
}
