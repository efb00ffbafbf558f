//go:build cgo

// Sealed buckets as hash tables. RocksDB's PlainTable finds a key by a hash index that lies in the file, where a block table
// searches an index of blocks and then a block: 3 cache lines instead of some 20. Such a file cannot be ingested into a
// family, but a family can be made of it (CreateColumnFamilyWithImport), which the C API does not have.
#include <rocksdb/metadata.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include <memory>

#include "cxx.h"

namespace {

// An internal key of RocksDB: the user key and eight bytes, sequence number 0 and type 1 (a value).
std::string internal_key(const char* key, size_t len) {
  std::string k(key, len);
  k.append(std::string("\x01\0\0\0\0\0\0\0", 8));
  return k;
}

}  // namespace

extern "C" {

// jb_hash_tables makes a family's options write hash tables, of keys of key_len bytes of which the first prefix_len are
// spread, and read both these and the block tables that the options wrote so far.
void jb_hash_tables(void* c_options, uint32_t key_len, size_t prefix_len) {
  rocksdb::PlainTableOptions plain;
  plain.user_key_len = key_len;
  plain.bloom_bits_per_key = 0;  // our own filters stand in front
  plain.store_index_in_file = true;
  rocksdb::Options& o = options_of(c_options);
  std::shared_ptr<rocksdb::TableFactory> hash(rocksdb::NewPlainTableFactory(plain));
  o.table_factory.reset(rocksdb::NewAdaptiveTableFactory(hash, o.table_factory, hash));
  o.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(prefix_len));
}

// jb_table_path is the path of a family's one table file; free it with free. Null and *err when there is not just one.
char* jb_table_path(void* c_db, void* c_family, char** err) {
  rocksdb::ColumnFamilyMetaData m;
  db_of(c_db)->GetColumnFamilyMetaData(static_cast<c_handle*>(c_family)->rep, &m);
  const rocksdb::SstFileMetaData* only = nullptr;
  for (const auto& level : m.levels)
    for (const auto& f : level.files) {
      if (only != nullptr) {
        keep_error(rocksdb::Status::Corruption("a family with more than one table"), err);
        return nullptr;
      }
      only = &f;
    }
  if (only == nullptr) {
    keep_error(rocksdb::Status::Corruption("a family without a table"), err);
    return nullptr;
  }
  return strdup((only->db_path + only->name).c_str());
}

// jb_import makes a family of one table file in a directory, which is moved. It returns the family's handle
// (rocksdb_column_family_handle_t), or null and sets *err.
void* jb_import(void* c_db, void* c_options, const char* family, const char* dir, const char* file, uint64_t size,
                const char* smallest, const char* largest, size_t key_len, char** err) {
  rocksdb::LiveFileMetaData f;
  f.name = std::string("/") + file;
  f.relative_filename = file;
  f.db_path = f.directory = dir;
  f.size = size;
  f.level = 0;
  f.smallestkey.assign(smallest, key_len);
  f.largestkey.assign(largest, key_len);
  f.smallest = internal_key(smallest, key_len);
  f.largest = internal_key(largest, key_len);
  rocksdb::ExportImportFilesMetaData metadata;
  metadata.db_comparator_name = options_of(c_options).comparator->Name();
  metadata.files.push_back(f);
  rocksdb::ImportColumnFamilyOptions how;
  how.move_files = true;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  if (keep_error(db_of(c_db)->CreateColumnFamilyWithImport(options_of(c_options), family, how, metadata, &handle), err))
    return nullptr;
  return new c_handle{handle, false};
}

}  // extern "C"
