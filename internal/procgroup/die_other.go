//go:build unix && !linux

package procgroup

import "syscall"

// dieWithParent does nothing: this system does not tell children that their parent is gone.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
