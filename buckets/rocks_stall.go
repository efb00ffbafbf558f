//go:build cgo

package buckets

import (
	"strconv"
	"strings"
	"time"
)

// Stalls reads RocksDB's properties, which it keeps without statistics. Only the families of meta and journal are written to.
func (r *Rocks) Stalls() Stalls {
	s := Stalls{Stopped: r.db.GetProperty("rocksdb.is-write-stopped") == "1", Time: stallTime(r.db.GetProperty("rocksdb.dbstats"))}
	s.Stops = statOf(r.db.GetProperty("rocksdb.db-write-stall-stats"), "write-buffer-manager-limit-stops")
	for _, h := range r.fixed[1:] {
		stats := r.db.GetPropertyCF("rocksdb.cf-write-stall-stats", h)
		s.Delays += statOf(stats, "total-delays")
		s.Stops += statOf(stats, "total-stops")
		pending, _ := strconv.ParseInt(r.db.GetPropertyCF("rocksdb.estimate-pending-compaction-bytes", h), 10, 64)
		s.Pending += pending
	}
	return s
}

// statOf reads one count of "Write Stall (count): name: n, name: n".
func statOf(stats, name string) int64 {
	_, rest, _ := strings.Cut(stats, " "+name+": ")
	end := strings.IndexFunc(rest, func(c rune) bool { return c < '0' || c > '9' })
	n, _ := strconv.ParseInt(rest[:max(end, 0)], 10, 64)
	return n
}

// stallTime reads "Cumulative stall: 00:00:0.125 H:M:S" out of the statistics of a database.
func stallTime(stats string) time.Duration {
	_, rest, _ := strings.Cut(stats, "Cumulative stall: ")
	text, _, _ := strings.Cut(rest, " ")
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return 0
	}
	h, _ := strconv.ParseInt(parts[0], 10, 64)
	m, _ := strconv.ParseInt(parts[1], 10, 64)
	sec, _ := strconv.ParseFloat(parts[2], 64)
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(sec*float64(time.Second)).Round(time.Millisecond)
}
