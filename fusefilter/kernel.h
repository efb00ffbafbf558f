// The inner loops of a probe. Each takes a whole batch, works out where every hash has to look some places ahead, and
// has the processor fetch that line before it is read: Go has no way to say so. Of 16 lanes over 5 million keys (12 MB) a
// hash costs 20 to 32 ns here and 105 to 160 ns in Go, where a load waits for the one before (Zen 3, 512 KiB of L2).
//
// The memory is the caller's; nothing is kept. Go has the same functions in kernel_go.go, for builds without C, and a test
// holds the two together.
#ifndef JOINBENCH_KERNEL_H
#define JOINBENCH_KERNEL_H

#include <stdint.h>

// jb_hit is Hit of Go.
typedef struct {
  uint32_t pos;
  uint64_t mask;
} jb_hit;

// jb_geometry is what places a hash has in a table (type geometry of Go).
typedef struct {
  uint64_t seed;
  uint32_t span, seg, mask;
} jb_geometry;

// jb_probe_lanes asks rows of `words` 64-bit words, each of which holds lanes of `bits` bits (8, 16 or 32), lane 0 lowest.
// It writes a hit for each hash with a lane of `ask` that does not deny it, and returns their number. out takes n.
int64_t jb_probe_lanes(const uint64_t* rows, uint32_t words, uint32_t bits, const jb_geometry* g, uint64_t ask,
                       const uint64_t* hashes, int64_t n, jb_hit* out);

// jb_probe_table asks one table of cells of `bits` bits. It writes a hit with `mask` for each hash that it does not deny.
int64_t jb_probe_table(const void* cells, uint32_t bits, const jb_geometry* g, uint64_t mask, const uint64_t* hashes,
                       int64_t n, jb_hit* out);

// jb_found is Found of Go.
typedef struct {
  uint32_t pos, head;
} jb_found;

// jb_find_open looks hashes up in an open index: its words of tags, its entries of three words (low, high, head), eight for
// each word of tags. It writes position and newest row of each that is there, and returns their number. out takes n.
int64_t jb_find_open(const uint64_t* tags, const uint32_t* entries, uint64_t mult, uint32_t shift, uint64_t group_mask,
                     const uint64_t* hashes, int64_t n, jb_found* out);

#endif
