//go:build !linux

package results

// fileSystemType is not known here.
func fileSystemType(string) string { return "" }

// freeBytes is not known here.
func freeBytes(string) (int64, bool) { return 0, false }
