//go:build cgo

package buckets

// #include "shim.h"
import "C"

import "github.com/linxGnu/grocksdb"

// Shared is what all tasks of a process have in common: the block cache. Background threads are shared anyway,
// they belong to RocksDB's default environment.
type Shared struct {
	cache   *grocksdb.Cache
	journal uint64 // write buffer of each task's journal
	bloom   bool
}

// SharedOptions are for the stores of a process.
type SharedOptions struct {
	// Memory is a budget in bytes. RocksDB gets a quarter of it: an eighth is the block cache, for meta and journal
	// (sealed families are read by mmap), an eighth the write buffers of the journals.
	Memory int64
	Tasks  int  // that the budget is for
	Bloom  bool // sealed tables have RocksDB's own bloom filter, in RAM while they are open
}

// bloomBits is RocksDB's usual choice, about 1 % false positives a table.
const bloomBits = 10

// NewShared makes what the stores share; Close it after them.
func NewShared(o SharedOptions) *Shared {
	eighth := uint64(max(o.Memory, 0)) / 8
	// Every database uses the default environment without being told. It must not be told: Options.SetEnv of the
	// binding takes the handle over, so that a second Options would get a null pointer.
	env := made(&liveC.envs, grocksdb.NewDefaultEnv())
	env.SetBackgroundThreads(1)
	env.SetHighPriorityBackgroundThreads(1)
	destroy(&liveC.envs, env)
	return &Shared{cache: made(&liveC.caches, grocksdb.NewLRUCache(eighth)), bloom: o.Bloom,
		journal: min(max(eighth/uint64(max(o.Tasks, 1)), minJournalBuffer), maxJournalBuffer)}
}

func (r *Rocks) makeOptions() {
	r.dbOpts = made(&liveC.options, grocksdb.NewDefaultOptions())
	o := r.dbOpts
	o.SetCreateIfMissing(true)
	o.SetCreateIfMissingColumnFamilies(true)
	o.SetAllowMmapReads(true) // sealed tables are read in place: no block cache, no copy
	o.SetMaxOpenFiles(-1)
	o.SetMaxTotalWalSize(walLimit)
	o.SetInfoLogLevel(grocksdb.WarnInfoLogLevel)
	o.SetKeepLogFileNum(2)
	o.SetManifestPreallocationSize(manifestAhead)
	o.SetStatsDumpPeriodSec(0)
	o.SetStatsPersistPeriodSec(0)
	o.SetWALRecoveryMode(grocksdb.PointInTimeRecovery)

	if r.shared.bloom {
		o.EnableStatistics() // how often it was wrong
		o.SetStatisticsLevel(grocksdb.StatisticsLevelExceptHistogramOrTimers)
	}
	r.blockOpts, r.bucketOpts = r.sealedOptions(), r.sealedOptions()
	C.jb_hash_tables(cptr(r.bucketOpts), KeySize, 8) // and it reads block tables still

	r.journalOpts = r.familyOptions(r.shared.journal)
	r.metaOpts = r.familyOptions(1 << 20)
	for _, opts := range []*grocksdb.Options{r.journalOpts, r.metaOpts} {
		table := made(&liveC.tableOptions, grocksdb.NewDefaultBlockBasedTableOptions())
		table.SetBlockCache(r.shared.cache)
		opts.SetBlockBasedTableFactory(table)
		destroy(&liveC.tableOptions, table)
	}

	r.read = made(&liveC.access, grocksdb.NewDefaultReadOptions())
	r.scan = made(&liveC.access, grocksdb.NewDefaultReadOptions())
	r.scan.SetFillCache(false)
	r.scan.SetTotalOrderSeek(true) // else a hash table is no ordered one
	r.write = made(&liveC.access, grocksdb.NewDefaultWriteOptions())
	r.writeSync = made(&liveC.access, grocksdb.NewDefaultWriteOptions())
	r.writeSync.SetSync(true)
	// A write that meets a dropped family must not poison the database (cases.md, B38).
	r.write.SetIgnoreMissingColumnFamilies(true)
	r.writeSync.SetIgnoreMissingColumnFamilies(true)
}

// sealedOptions are for families of sealed buckets, with block tables.
func (r *Rocks) sealedOptions() *grocksdb.Options {
	o := r.familyOptions(64 << 10) // nothing is ever put into a bucket's memtable
	table := made(&liveC.tableOptions, grocksdb.NewDefaultBlockBasedTableOptions())
	table.SetBlockSize(blockSize)
	table.SetNoBlockCache(true)
	table.SetFormatVersion(5)
	if r.shared.bloom {
		table.SetFilterPolicy(grocksdb.NewBloomFilterFull(bloomBits)) // which the table options own from here on
	}
	o.SetBlockBasedTableFactory(table)
	destroy(&liveC.tableOptions, table)
	o.SetDisableAutoCompactions(true)
	return o
}

func (r *Rocks) familyOptions(buffer uint64) *grocksdb.Options {
	o := made(&liveC.options, grocksdb.NewDefaultOptions())
	o.SetCompression(grocksdb.NoCompression) // mmap reads pin uncompressed blocks without a copy
	o.SetWriteBufferSize(buffer)
	o.SetMaxWriteBufferNumber(3)
	return o
}

func (r *Rocks) destroyOptions() {
	destroy(&liveC.options, r.dbOpts, r.bucketOpts, r.blockOpts, r.journalOpts, r.metaOpts)
	destroy(&liveC.access, r.read, r.scan)
	destroy(&liveC.access, r.write, r.writeSync)
}

// BloomWrong is how often a table's bloom filter let a key through that the table does not have, since the store was
// opened; 0 without bloom filters.
func (r *Rocks) BloomWrong() uint64 {
	if !r.shared.bloom {
		return 0
	}
	// Of positives first: a read that ends between the two is then at most missing.
	positive := r.dbOpts.GetTickerCount(grocksdb.TickerType(C.jb_ticker_bloom_positive()))
	right := r.dbOpts.GetTickerCount(grocksdb.TickerType(C.jb_ticker_bloom_true_positive()))
	return positive - min(right, positive)
}
