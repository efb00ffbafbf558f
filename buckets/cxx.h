// What the files in C++ of this package share: how to get from a handle of RocksDB's C API to what is in it. The structs of
// the C API are not in its header; those that are used here start with their pointer (or are the object), in 9.10 as in all
// versions before. A test opens, writes, imports and reads through each of them.
#ifndef JOINBENCH_CXX_H
#define JOINBENCH_CXX_H

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <cstring>
#include <string>

// rocksdb_options_t is a struct whose only member is the Options.
inline rocksdb::Options& options_of(void* c_options) { return *static_cast<rocksdb::Options*>(c_options); }

// rocksdb_t is a struct whose only member is the DB*.
inline rocksdb::DB* db_of(void* c_db) { return *static_cast<rocksdb::DB**>(c_db); }

// c_handle is rocksdb_column_family_handle_t: immortal is set for the default family alone.
struct c_handle {
  rocksdb::ColumnFamilyHandle* rep;
  bool immortal;
};

inline bool keep_error(const rocksdb::Status& s, char** err) {
  if (s.ok()) return false;
  if (*err == nullptr) *err = strdup(s.ToString().c_str());
  return true;
}

#endif
