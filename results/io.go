package results

import "strconv"

// IO is what a process did to block devices since its start, as Linux counts it: Written is what it dirtied in the page cache
// of file systems that have a device, Read what was fetched from one for it.
type IO struct {
	Read, Written int64
	Known         bool
}

// ReadIO reads the counts of this process; not Known on other systems.
func ReadIO() IO { return system{root: "/"}.io() }

func (s system) io() IO {
	const file = "proc/self/io"
	read, err1 := strconv.ParseInt(s.field(file, "read_bytes"), 10, 64)
	written, err2 := strconv.ParseInt(s.field(file, "write_bytes"), 10, 64)
	return IO{read, written, err1 == nil && err2 == nil}
}
