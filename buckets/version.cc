//go:build cgo

// The version comes from the library that is linked in, not from a header: the C API has no call for it.
#include <rocksdb/statistics.h>
#include <rocksdb/version.h>

#include <cstdlib>
#include <cstring>

// The binding's numbers of tickers are those of another version.
extern "C" unsigned jb_ticker_bloom_positive() { return rocksdb::BLOOM_FILTER_FULL_POSITIVE; }
extern "C" unsigned jb_ticker_bloom_true_positive() { return rocksdb::BLOOM_FILTER_FULL_TRUE_POSITIVE; }

extern "C" char* jb_version() { return strdup(rocksdb::GetRocksVersionAsString().c_str()); }
