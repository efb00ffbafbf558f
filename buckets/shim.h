// What crosses the C boundary of this package, in batches: flat arrays in, flat arrays out, one call each.
#ifndef JOINBENCH_SHIM_H
#define JOINBENCH_SHIM_H

#include <stddef.h>
#include <stdint.h>
#include <rocksdb/c.h>

// jb_store is one open task directory with the scratch memory of its reads. Used by one thread at a time.
typedef struct jb_store {
  rocksdb_t* db;
  rocksdb_column_family_handle_t* meta;
  rocksdb_column_family_handle_t* journal;
  rocksdb_readoptions_t* read;
  rocksdb_writeoptions_t* write;
  rocksdb_writeoptions_t* write_sync;
  rocksdb_writebatch_t* batch;
  size_t cap;  // keys that the arrays below hold
  const char** keys;
  size_t* key_lens;
  rocksdb_pinnableslice_t** values;
  char** errs;
} jb_store;

jb_store* jb_store_new(void* db, void* meta, void* journal, void* read, void* write, void* write_sync);
void jb_store_free(jb_store* s);

// jb_lookup reads the keys of n_groups families; group g has the keys group_end[g-1] .. group_end[g] of `keys`, each
// key_len bytes, sorted. Values are copied one after another to out, out_off[i] .. out_off[i+1] being that of key i.
// Returns the bytes that all values need: if that is over out_cap nothing beyond out_cap was written and the
// caller comes again with more room. -1: *err is set, to be freed with jb_free.
int64_t jb_lookup(jb_store* s, size_t n_groups, void** families, const int32_t* group_end, const char* keys,
                  size_t key_len, char* out, size_t out_cap, uint32_t* out_off, char** err);

// jb_write adds one buckets.Write to the next batch; see there for the format of meta. keys are five of 8 bytes in the journal:
// of the record; the ring's first; the first that stays, with flag 1; the first that goes, with flag 2, up to the last, which
// stays. Flag 4: this was the last one, and the batch is applied, with flag 8 synced. Returns 0, or -1 with *err set.
int jb_write(jb_store* s, const char* keys, const char* record, size_t record_len, const char* meta, size_t meta_len,
             int flags, char** err);

// jb_sst_new starts a table file with the options of a family (a rocksdb_options_t). It is to be freed with jb_sst_free
// even if *err is set.
void* jb_sst_new(void* c_options, const char* path, char** err);

// jb_sst_put adds n keys and values to it. Returns 0, or -1 with *err set.
int jb_sst_put(void* writer, size_t n, const char* keys, size_t key_len, const char* values, const uint32_t* value_end,
               char** err);

// jb_sst_finish syncs the file and gives its size. Returns 0, or -1 with *err set.
int jb_sst_finish(void* writer, uint64_t* size, char** err);

void jb_sst_free(void* writer);

// See import.cc.
void jb_hash_tables(void* c_options, uint32_t key_len, size_t prefix_len);
char* jb_table_path(void* db, void* family, char** err);
void* jb_import(void* db, void* c_options, const char* family, const char* dir, const char* file, uint64_t size,
                const char* smallest, const char* largest, size_t key_len, char** err);

// jb_scan_hashes copies the first 8 bytes, big endian, of up to cap keys and moves the iterator past them; equal
// neighbours are copied once, *last carrying over between calls (has_last 0 at the first). With `over` only those that have a
// row below `rows` whose bit in it is not set. -1: a value that is none, -2: one with a higher row.
int64_t jb_scan_hashes(void* iter, const uint64_t* over, uint32_t rows, uint64_t* out, size_t cap, uint64_t* last,
                       int* has_last);

// jb_scan_values copies keys and values, u32 key length, u32 value length, key, value, as many as fit into cap bytes, and moves
// the iterator past them. With `over` as jb_scan_hashes. Returns the bytes; 0: it is at its end, or *need says how large cap must be for the next.
// -1, -2 as jb_scan_hashes.
int64_t jb_scan_values(void* iter, const uint64_t* over, uint32_t rows, char* out, size_t cap, size_t* need);

// Which counters of RocksDB's statistics say how often a table's bloom filter let a key through, and how often rightly.
unsigned jb_ticker_bloom_positive(void);
unsigned jb_ticker_bloom_true_positive(void);

// jb_version is the linked library's version; free it with free.
char* jb_version(void);

void jb_free(char* p);

#endif
