//go:build cgo

// The version comes from the library that is linked in, not from a header: the C API has no call for it.
#include <rocksdb/version.h>

#include <cstdlib>
#include <cstring>

extern "C" char* jb_version() { return strdup(rocksdb::GetRocksVersionAsString().c_str()); }
