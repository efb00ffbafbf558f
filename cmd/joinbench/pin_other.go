//go:build !linux

package main

// pin does nothing: threads go where the system puts them.
func pin(int) error { return nil }
