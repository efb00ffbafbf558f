//go:build cgo

#include "kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// How many hashes ahead of the one that is asked the lines are fetched. 8 to 32 measured alike, 4 was a third slower.
#define AHEAD 16

static inline uint64_t mix(uint64_t h, uint64_t seed) {
  h += seed;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ULL;
  return h ^ h >> 33;
}

typedef struct {
  uint64_t m;
  uint32_t a, b, c;
} spot;

static inline spot find(const jb_geometry* g, uint64_t hash) {
  spot s;
  s.m = mix(hash, g->seed);
  s.a = (uint32_t)(((unsigned __int128)s.m * g->span) >> 64);
  s.b = s.a + g->seg;
  s.c = s.b + g->seg;
  s.b ^= (uint32_t)(s.m >> 18) & g->mask;
  s.c ^= (uint32_t)s.m & g->mask;
  return s;
}

static inline uint64_t fingerprint(uint64_t m) { return m ^ m >> 32; }

// exact says which lanes of a row of residues are zero. Rarely called: one word says for nearly all hashes that none is.
static uint64_t exact(const uint64_t* a, const uint64_t* b, const uint64_t* c, uint64_t f, uint32_t words, uint32_t bits) {
  uint64_t out = 0, lane = bits == 32 ? 0xffffffffULL : (1ULL << bits) - 1;
  uint32_t per_word = 64 / bits;
  for (uint32_t w = 0; w < words; w++) {
    uint64_t t = a[w] ^ b[w] ^ c[w] ^ f;
    for (uint32_t i = 0; i < per_word && w * per_word + i < 64; i++)
      out |= (uint64_t)((t >> (i * bits) & lane) == 0) << (w * per_word + i);
  }
  return out;
}

// Any width of row and lane, 64 bits at a time. (x - 1) & ~x & 0x80 is not zero in some lane if, and only if, a lane of x is.
static inline __attribute__((always_inline)) int64_t lanes_by_word(const uint64_t* rows, uint32_t words, uint32_t bits,
                                                                   const jb_geometry* g, uint64_t ask,
                                                                   const uint64_t* hashes, int64_t n, jb_hit* out) {
  const uint64_t ones = bits == 8 ? 0x0101010101010101ULL : bits == 16 ? 0x0001000100010001ULL : 0x0000000100000001ULL;
  const uint64_t tops = ones << (bits - 1), lane = bits == 32 ? 0xffffffffULL : (1ULL << bits) - 1;
  int64_t k = 0;
  spot ring[AHEAD];
  for (int64_t i = 0; i < n + AHEAD; i++) {
    spot* s = &ring[i & (AHEAD - 1)];
    if (i >= AHEAD) {
      const uint64_t *a = rows + (uint64_t)s->a * words, *b = rows + (uint64_t)s->b * words, *c = rows + (uint64_t)s->c * words;
      uint64_t f = (fingerprint(s->m) & lane) * ones, any = 0;
      for (uint32_t w = 0; w < words; w++) {
        uint64_t t = a[w] ^ b[w] ^ c[w] ^ f;
        any |= (t - ones) & ~t;
      }
      if (any & tops) {
        uint64_t mask = exact(a, b, c, f, words, bits) & ask;
        out[k].pos = (uint32_t)(i - AHEAD);
        out[k].mask = mask;
        k += mask != 0;
      }
    }
    if (i < n) {
      *s = find(g, hashes[i]);
      for (uint32_t w = 0; w < words; w += 8) {
        __builtin_prefetch(rows + (uint64_t)s->a * words + w);
        __builtin_prefetch(rows + (uint64_t)s->b * words + w);
        __builtin_prefetch(rows + (uint64_t)s->c * words + w);
      }
    }
  }
  return k;
}

#if defined(__x86_64__)
// 16 lanes of 16 bits, the usual case: a row is one AVX2 register. Half the instructions of lanes_by_word.
__attribute__((target("avx2"))) static int64_t lanes_avx2(const uint64_t* rows, const jb_geometry* g, uint64_t ask,
                                                          const uint64_t* hashes, int64_t n, jb_hit* out) {
  int64_t k = 0;
  spot ring[AHEAD];
  for (int64_t i = 0; i < n + AHEAD; i++) {
    spot* s = &ring[i & (AHEAD - 1)];
    if (i >= AHEAD) {
      const uint64_t *a = rows + (uint64_t)s->a * 4, *b = rows + (uint64_t)s->b * 4, *c = rows + (uint64_t)s->c * 4;
      __m256i x = _mm256_xor_si256(_mm256_loadu_si256((const __m256i*)a), _mm256_loadu_si256((const __m256i*)b));
      x = _mm256_xor_si256(x, _mm256_loadu_si256((const __m256i*)c));
      x = _mm256_cmpeq_epi16(x, _mm256_set1_epi16((short)fingerprint(s->m)));
      if (!_mm256_testz_si256(x, x)) {
        uint64_t mask = exact(a, b, c, (fingerprint(s->m) & 0xffff) * 0x0001000100010001ULL, 4, 16) & ask;
        out[k].pos = (uint32_t)(i - AHEAD);
        out[k].mask = mask;
        k += mask != 0;
      }
    }
    if (i < n) {
      *s = find(g, hashes[i]);
      __builtin_prefetch(rows + (uint64_t)s->a * 4);
      __builtin_prefetch(rows + (uint64_t)s->b * 4);
      __builtin_prefetch(rows + (uint64_t)s->c * 4);
    }
  }
  return k;
}
#endif

int64_t jb_probe_lanes(const uint64_t* rows, uint32_t words, uint32_t bits, const jb_geometry* g, uint64_t ask,
                       const uint64_t* hashes, int64_t n, jb_hit* out) {
  if (words == 4 && bits == 16) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return lanes_avx2(rows, g, ask, hashes, n, out);
#endif
    return lanes_by_word(rows, 4, 16, g, ask, hashes, n, out);
  }
  return lanes_by_word(rows, words, bits, g, ask, hashes, n, out);
}

// One table: the answer of a hash is a bit, and no branch depends on it until it is a hit.
#define PROBE_TABLE(NAME, CELL)                                                                                          \
  static int64_t NAME(const CELL* cells, const jb_geometry* g, uint64_t mask, const uint64_t* hashes, int64_t n,         \
                      jb_hit* out) {                                                                                     \
    int64_t k = 0;                                                                                                       \
    spot ring[AHEAD];                                                                                                    \
    for (int64_t i = 0; i < n + AHEAD; i++) {                                                                            \
      spot* s = &ring[i & (AHEAD - 1)];                                                                                  \
      if (i >= AHEAD && (CELL)((CELL)fingerprint(s->m) ^ cells[s->a] ^ cells[s->b] ^ cells[s->c]) == 0) {                \
        out[k].pos = (uint32_t)(i - AHEAD);                                                                              \
        out[k++].mask = mask;                                                                                            \
      }                                                                                                                  \
      if (i < n) {                                                                                                       \
        *s = find(g, hashes[i]);                                                                                         \
        __builtin_prefetch(cells + s->a);                                                                                \
        __builtin_prefetch(cells + s->b);                                                                                \
        __builtin_prefetch(cells + s->c);                                                                                \
      }                                                                                                                  \
    }                                                                                                                    \
    return k;                                                                                                            \
  }

PROBE_TABLE(table8, uint8_t)
PROBE_TABLE(table16, uint16_t)
PROBE_TABLE(table32, uint32_t)

int64_t jb_probe_table(const void* cells, uint32_t bits, const jb_geometry* g, uint64_t mask, const uint64_t* hashes,
                       int64_t n, jb_hit* out) {
  switch (bits) {
    case 8: return table8(cells, g, mask, hashes, n, out);
    case 16: return table16(cells, g, mask, hashes, n, out);
    default: return table32(cells, g, mask, hashes, n, out);
  }
}

#define LOW 0x0101010101010101ULL
#define TOP 0x8080808080808080ULL

static inline uint64_t tags_of(uint64_t product) {
  uint64_t tag = product >> 24 & 0xff;
  return (tag < 2 ? 2 : tag) * LOW;
}

// The entry of a hash from its own group on, or -1.
static inline int64_t find_entry(const uint64_t* tags, const uint32_t* entries, uint64_t group_mask, uint64_t group,
                                 uint64_t want, uint64_t hash) {
  for (;;) {
    uint64_t word = tags[group], d = word ^ want;
    for (uint64_t eq = (d - LOW) & ~d & TOP; eq != 0; eq &= eq - 1) {
      int64_t e = (int64_t)(group * 8) + __builtin_ctzll(eq) / 8;
      if (entries[3 * e] == (uint32_t)hash && entries[3 * e + 1] == (uint32_t)(hash >> 32)) return e;
    }
    if (word >> 56 == 0) return -1;
    group = (group + 1) & group_mask;
  }
}

int64_t jb_find_open(const uint64_t* tags, const uint32_t* entries, uint64_t mult, uint32_t shift, uint64_t group_mask,
                     const uint64_t* hashes, int64_t n, jb_found* out) {
  // First the tags alone: they deny 98 of 100 absent hashes. What is left is noted, and its entries are fetched.
  int64_t left = 0;
  for (int64_t i = 0; i < n + AHEAD; i++) {
    if (i < n) __builtin_prefetch(tags + (hashes[i] * mult >> shift));
    if (i < AHEAD) continue;
    uint64_t p = hashes[i - AHEAD] * mult, group = p >> shift;
    uint64_t word = tags[group], d = word ^ tags_of(p), eq = (d - LOW) & ~d & TOP;
    if (eq != 0 || word >> 56 != 0) {
      __builtin_prefetch(entries + 3 * (group * 8 + (eq != 0 ? __builtin_ctzll(eq) / 8 : 0)));
      out[left++].pos = (uint32_t)(i - AHEAD);
    }
  }
  int64_t k = 0;
  for (int64_t i = 0; i < left; i++) {
    uint32_t pos = out[i].pos;
    uint64_t hash = hashes[pos], p = hash * mult;
    int64_t e = find_entry(tags, entries, group_mask, p >> shift, tags_of(p), hash);
    if (e >= 0) {
      out[k].pos = pos;
      out[k++].head = entries[3 * e + 2];
    }
  }
  return k;
}
