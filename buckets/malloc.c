//go:build cgo

// How RocksDB's memory comes back. A goroutine that calls into C does so from one thread after another, and glibc gives
// each its own arena, up to eight a core, each of which keeps what was once freed in it: resident memory crept up for
// minutes although nothing was leaked. Two arenas are enough for the two or three threads that allocate at a time. Large
// blocks, the write buffers of the journal above all, go back to the system at once: the threshold for that otherwise
// rises to whatever was freed last.
#include <malloc.h>

#ifdef __GLIBC__
__attribute__((constructor)) static void jb_malloc_settings(void) {
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
}
#endif
