package leak

import (
	"strings"
	"testing"
	"time"
)

func wait(c chan struct{}) { <-c }

// TestGoroutines: one that runs is found, by what it runs and by who started it, and not when it has ended.
func TestGoroutines(t *testing.T) {
	if left := Goroutines(); len(left) != 0 {
		t.Fatalf("before anything was started: %v", left)
	}
	c := make(chan struct{})
	go wait(c)
	time.AfterFunc(0, func() { <-c })
	both := func(left []string) bool { return len(left) == 2 && strings.Contains(left[0]+left[1], "leak.wait(") }
	left := Goroutines()
	for end := time.Now().Add(10 * time.Second); !both(left) && time.Now().Before(end); left = Goroutines() {
		time.Sleep(time.Millisecond) // one that was not scheduled yet shows no function of its own
	}
	if !both(left) {
		t.Errorf("found %q", left)
	}
	close(c)
	if code := Check(0, nil); code != 0 {
		t.Errorf("code %d when all has ended", code)
	}
	if Check(0, map[string]int64{"things": 2}) != 1 || Check(3, map[string]int64{"things": 2}) != 3 {
		t.Error("objects that are alive change nothing, or hide the code of the tests")
	}
}
