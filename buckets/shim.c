//go:build cgo

#include "shim.h"

#include <stdlib.h>
#include <string.h>

jb_store* jb_store_new(void* db, void* meta, void* journal, void* read, void* write, void* write_sync) {
  jb_store* s = calloc(1, sizeof *s);
  s->db = db;
  s->meta = meta;
  s->journal = journal;
  s->read = read;
  s->write = write;
  s->write_sync = write_sync;
  s->batch = rocksdb_writebatch_create();
  return s;
}

static void free_scratch(jb_store* s) {
  free(s->keys);
  free(s->key_lens);
  free(s->values);
  free(s->errs);
}

void jb_store_free(jb_store* s) {
  free_scratch(s);
  rocksdb_writebatch_destroy(s->batch);
  free(s);
}

static void reserve(jb_store* s, size_t n) {
  if (n <= s->cap) return;
  free_scratch(s);
  s->cap = n + n / 2;
  s->keys = malloc(s->cap * sizeof *s->keys);
  s->key_lens = malloc(s->cap * sizeof *s->key_lens);
  s->values = malloc(s->cap * sizeof *s->values);
  s->errs = malloc(s->cap * sizeof *s->errs);
}

int64_t jb_lookup(jb_store* s, size_t n_groups, void** families, const int32_t* group_end, const char* keys,
                  size_t key_len, char* out, size_t out_cap, uint32_t* out_off, char** err) {
  size_t total = 0;
  size_t from = 0;
  out_off[0] = 0;
  for (size_t g = 0; g < n_groups; g++) {
    size_t n = (size_t)group_end[g] - from;
    reserve(s, n);
    for (size_t i = 0; i < n; i++) {
      s->keys[i] = keys + (from + i) * key_len;
      s->key_lens[i] = key_len;
      s->values[i] = NULL;
      s->errs[i] = NULL;
    }
    rocksdb_batched_multi_get_cf(s->db, s->read, families[g], n, s->keys, s->key_lens, s->values, s->errs, 1);
    for (size_t i = 0; i < n; i++) {
      if (s->errs[i] != NULL) {
        if (*err == NULL) {
          *err = s->errs[i];
        } else {
          rocksdb_free(s->errs[i]);
        }
      }
      if (s->values[i] != NULL) {
        size_t len = 0;
        const char* v = rocksdb_pinnableslice_value(s->values[i], &len);
        if (total + len <= out_cap) memcpy(out + total, v, len);
        total += len;
        rocksdb_pinnableslice_destroy(s->values[i]);
      }
      out_off[from + i + 1] = (uint32_t)total;
    }
    from += n;
    if (*err != NULL) return -1;
  }
  return (int64_t)total;
}

static void add_meta(jb_store* s, const char* meta, size_t len) {
  const char* end = meta + len;
  while (meta < end) {
    uint32_t klen, vlen;
    memcpy(&klen, meta, 4);
    memcpy(&vlen, meta + 4, 4);
    const char* key = meta + 8;
    if (vlen == UINT32_MAX) {
      rocksdb_writebatch_delete_cf(s->batch, s->meta, key, klen);
      meta = key + klen;
    } else {
      rocksdb_writebatch_put_cf(s->batch, s->meta, key, klen, key + klen, vlen);
      meta = key + klen + vlen;
    }
  }
}

int jb_write(jb_store* s, const char* keys, const char* record, size_t record_len, const char* meta, size_t meta_len,
             int flags, char** err) {
  const char *key = keys, *start = keys + 8, *below = keys + 16, *above = keys + 24, *end = keys + 32;
  if (flags & 1) rocksdb_writebatch_delete_range_cf(s->batch, s->journal, start, 8, below, 8);
  if (flags & 2) rocksdb_writebatch_delete_range_cf(s->batch, s->journal, above, 8, end, 8);
  if (record_len > 0) rocksdb_writebatch_put_cf(s->batch, s->journal, key, 8, record, record_len);
  add_meta(s, meta, meta_len);
  if (!(flags & 4)) return 0;
  rocksdb_write(s->db, flags & 8 ? s->write_sync : s->write, s->batch, err);
  rocksdb_writebatch_clear(s->batch);
  return *err == NULL ? 0 : -1;
}

static uint32_t u32(const unsigned char* p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}

// Whether a value (see seal.go) has a row below `rows` that is not in `over`; -1 if it is none, -2 if a row is too high.
static int has_live(const unsigned char* v, size_t len, const uint64_t* over, uint32_t rows) {
  if (len < 4 || v[0] != 1) return -1;
  uint32_t left = (uint32_t)v[2] | (uint32_t)v[3] << 8;
  for (size_t at = 4; left > 0; left--) {
    if (len - at < 8) return -1;
    uint32_t row = u32(v + at), size = u32(v + at + 4);
    if (row >= rows) return -2;
    if ((over[row >> 6] >> (row & 63) & 1) == 0) return 1;
    if (len - at - 8 < size) return -1;
    at += 8 + (size_t)size;
  }
  return 0;
}

int64_t jb_scan_hashes(void* iter, const uint64_t* over, uint32_t rows, uint64_t* out, size_t cap, uint64_t* last,
                       int* has_last) {
  size_t n = 0;
  rocksdb_iterator_t* it = iter;
  for (; n < cap && rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
    size_t len = 0;
    const unsigned char* k = (const unsigned char*)rocksdb_iter_key(it, &len);
    uint64_t h = 0;
    for (size_t i = 0; i < 8 && i < len; i++) h = h << 8 | k[i];
    if (*has_last && h == *last) continue;
    if (over != NULL) {
      const unsigned char* v = (const unsigned char*)rocksdb_iter_value(it, &len);
      int live = has_live(v, len, over, rows);
      if (live < 0) return live;
      if (live == 0) continue;
    }
    out[n++] = h;
    *last = h;
    *has_last = 1;
  }
  return (int64_t)n;
}

int64_t jb_scan_values(void* iter, const uint64_t* over, uint32_t rows, char* out, size_t cap, size_t* need) {
  rocksdb_iterator_t* it = iter;
  size_t at = 0;
  *need = 0;
  for (; rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
    size_t klen = 0, vlen = 0;
    const char* k = rocksdb_iter_key(it, &klen);
    const char* v = rocksdb_iter_value(it, &vlen);
    if (over != NULL) {
      int live = has_live((const unsigned char*)v, vlen, over, rows);
      if (live < 0) return live;
      if (live == 0) continue;
    }
    size_t size = 8 + klen + vlen;
    if (size > cap - at) {
      *need = size;
      break;
    }
    uint32_t lens[2] = {(uint32_t)klen, (uint32_t)vlen};
    memcpy(out + at, lens, 8);
    memcpy(out + at + 8, k, klen);
    memcpy(out + at + 8 + klen, v, vlen);
    at += size;
  }
  return (int64_t)at;
}

void jb_free(char* p) { rocksdb_free(p); }
