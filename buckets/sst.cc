//go:build cgo

// Writing of table files. The C API makes its SstFileWriter with invalidate_page_cache, which throws every megabyte out
// of the page cache as soon as it is written: the first read of each page of a bucket that was just sealed then went to
// the disk (25 to 50 µs a lookup, and the whole table once more for the filter). It has no switch for that.
#include <rocksdb/sst_file_writer.h>

#include "cxx.h"

extern "C" {

void* jb_sst_new(void* c_options, const char* path, char** err) {
  auto* w = new rocksdb::SstFileWriter(rocksdb::EnvOptions(options_of(c_options)), options_of(c_options), nullptr,
                                       /*invalidate_page_cache=*/false);
  keep_error(w->Open(path), err);
  return w;
}

int jb_sst_put(void* writer, size_t n, const char* keys, size_t key_len, const char* values, const uint32_t* value_end,
               char** err) {
  auto* w = static_cast<rocksdb::SstFileWriter*>(writer);
  uint32_t from = 0;
  for (size_t i = 0; i < n; i++) {
    rocksdb::Slice key(keys + i * key_len, key_len), value(values + from, value_end[i] - from);
    if (keep_error(w->Put(key, value), err)) return -1;
    from = value_end[i];
  }
  return 0;
}

int jb_sst_finish(void* writer, uint64_t* size, char** err) {
  rocksdb::ExternalSstFileInfo info;
  if (keep_error(static_cast<rocksdb::SstFileWriter*>(writer)->Finish(&info), err)) return -1;
  *size = info.file_size;
  return 0;
}

void jb_sst_free(void* writer) { delete static_cast<rocksdb::SstFileWriter*>(writer); }

}  // extern "C"
