//go:build unix

// Package procgroup has the attributes of processes that this program starts: what the terminal signals is for the parent, and none of them
// stays behind when it is killed, not even one that was stopped. (The SIGHUP of the system comes to one that has stopped, not to one that is
// about to: `ab`, killed while two runs took turns, left one for ever.)
package procgroup

import "syscall"

// New puts a child into a process group of its own. On Linux it gets the signal when its parent dies, or the parent's thread that started
// it: a goroutine that ends while it is locked to its thread must not start one. One that stands still ends by SIGKILL,
// or sees after SIGCONT what its parent's end closed; other signals wait until it goes on.
func New(end syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(attr, end)
	return attr
}
