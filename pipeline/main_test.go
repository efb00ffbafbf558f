package pipeline

import (
	"flag"
	"os"
	"testing"
)

// systemTemp is where temporary files go that outlive the tests.
var systemTemp = os.TempDir()

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(childVariable) != "" {
		serveLives()
		os.Exit(0)
	}
	if os.Getenv(armVariable) != "" {
		os.Exit(serveArm())
	}
	if os.Getenv(lockVariable) != "" {
		failToLock()
		os.Exit(0)
	}
	// States of tests are small and many: memory is the place for them where there is one.
	if dir, err := os.MkdirTemp("/dev/shm", "joinbench-test-"); err == nil && os.Getenv("TMPDIR") == "" {
		_ = os.Setenv("TMPDIR", dir)
		code := runAndCheck(m)
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}
	os.Exit(runAndCheck(m))
}
