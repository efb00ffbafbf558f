package buckets

import "sync/atomic"

// liveC counts what was made in C and is not freed yet, by kind. All are zero when every store and every Shared is closed.
var liveC struct {
	stores, families, fixed, caches, envs, options, tableOptions, ingestOptions, flushOptions, access, iterators, writers atomic.Int64
}

// LiveObjects says by name what of RocksDB is still there: empty when everything is closed. For tests and for whoever looks
// for a leak.
func LiveObjects() map[string]int64 {
	live := map[string]int64{}
	for name, n := range map[string]*atomic.Int64{"stores": &liveC.stores, "families": &liveC.families, "fixed families": &liveC.fixed,
		"caches": &liveC.caches, "environments": &liveC.envs, "options": &liveC.options, "table options": &liveC.tableOptions,
		"ingest options": &liveC.ingestOptions, "flush options": &liveC.flushOptions, "read and write options": &liveC.access, "iterators": &liveC.iterators,
		"table writers": &liveC.writers} {
		if v := n.Load(); v != 0 {
			live[name] = v
		}
	}
	return live
}

// made counts an object.
func made[T any](n *atomic.Int64, obj T) T {
	n.Add(1)
	return obj
}

// destroy frees objects and counts them off.
func destroy[T interface{ Destroy() }](n *atomic.Int64, objs ...T) {
	for _, o := range objs {
		o.Destroy()
		n.Add(-1)
	}
}
