//go:build !linux

package core

// threadNow knows no thread's clock.
func threadNow() threadMoment { return threadMoment{} }
