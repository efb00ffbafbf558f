package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSyncModes counts the system calls that make log and results outlive a power cut: in mode batch both with each batch, in
// interval about once a second, in none not for a batch.
func TestSyncModes(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	p := newPlace(t)
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf(`{"id":"k%d","t":%d}`, i, i))
	}
	a, b := p.write("a", lines...), p.write("b", lines...)
	for _, tasks := range []int{1, 2} {
		syncs := map[string][2]int{} // by mode, of logs and of the results
		for _, mode := range []string{"none", "interval", "batch"} {
			name := fmt.Sprintf("%s-%d", mode, tasks)
			conf := p.write("join.yaml", fmt.Sprintf("a: {key: $.id, time: $.t}\nb: {key: $.id, time: $.t}\nwindow: {within: 1h}\nstate: {memory: 4MiB, tasks: %d, sync: %s}\n", tasks, mode))
			trace := p.path(name + ".trace")
			cmd := exec.Command(strace, "-f", "-qq", "-y", "-e", "trace=fsync,fdatasync,sync_file_range", "-o", trace, os.Args[0], "join", "-c", conf, "--a", a, "--b", b,
				"--batch", "50", "--out", p.path(name+".out"), "--state-dir", p.path(name), "--progress", "none")
			cmd.Env = append(os.Environ(), asProgram+"=1")
			if out, err := cmd.CombinedOutput(); strings.Contains(string(out), "ptrace") {
				t.Skipf("strace may not trace here: %s", out)
			} else if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var n [2]int
			for _, l := range strings.Split(p.read(name+".trace"), "\n") {
				switch _, file, _ := strings.Cut(l, "<"); {
				case strings.Contains(l, "resumed>"):
				case strings.Contains(file, ".log>"):
					n[0]++
				case strings.Contains(file, filepath.Base(name)+".out>"):
					n[1]++
				}
			}
			syncs[mode] = n
		}
		t.Logf("%d tasks: syncs of logs and of the results: %v", tasks, syncs)
		const batches = 2 * 1000 / 50
		none, interval, batch := syncs["none"], syncs["interval"], syncs["batch"]
		// RocksDB itself syncs its log when it is opened and closed.
		if none[0] > 2*tasks || none[1] != 0 {
			t.Errorf("%d tasks: mode none syncs %v", tasks, none)
		}
		if interval[0] <= none[0] || interval[1] == 0 || interval[0] > batches/2 {
			t.Errorf("%d tasks: mode interval syncs %v, in %d batches", tasks, interval, batches)
		}
		if batch[0] < batches || batch[1] == 0 {
			t.Errorf("%d tasks: mode batch syncs %v, in %d batches", tasks, batch, batches)
		}
	}
}
