package pipeline

import "syscall"

// dieWithParent has the system end a child whose parent is gone.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
