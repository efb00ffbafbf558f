//go:build cgo

package buckets

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"debug/elf"
	"unsafe"
)

// Build says which RocksDB is linked in, and whether its assertions are compiled in, which makes every figure
// measured with it worthless. A release build calls __assert_fail nowhere, so the program does not import it.
func Build() (version string, assertions bool) {
	v := C.jb_version()
	defer C.free(unsafe.Pointer(v))
	return C.GoString(v), importsAssert("/proc/self/exe")
}

func importsAssert(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	symbols, _ := f.ImportedSymbols()
	for _, s := range symbols {
		if s.Name == "__assert_fail" {
			return true
		}
	}
	return false
}
