//go:build !linux

package core

// standBehind does nothing where threads have no priority of their own.
func standBehind() {}
