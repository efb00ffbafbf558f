package pipeline

import (
	"fmt"
	"testing"
)

// TestWorkloadsStayTheSame: the workload of a profile has the name that it has in published results, and so the same records.
// A change that is meant changes this table, and says so in CHANGELOG.md.
func TestWorkloadsStayTheSame(t *testing.T) {
	want := map[string]string{
		"ci":        "b424cdb229a0d9737540503157e5bd0f 569625 4200000",
		"dense":     "13be702a630e746315f303f8e34795e8 58139573 33000000",
		"gate":      "a6c8fe3dfe350825350bf4535a446548 186268 1100000",
		"hot":       "c1c2d842e81b4f338da445c06de2e2c2 6145834 66000000",
		"kafka":     "badbc33b2c9297b3f44428520e62df12 1173612 5000000",
		"left":      "22a2af5213ac0418373dc151249b735f 10920635 10000000",
		"quick":     "d7114311fb9234fe5e20e65b7fc9ca88 1347223 10000000",
		"recovery":  "400e133d299115edee51d92d07b0ec87 6736112 10000000",
		"reference": "f82c40f17e0ab98c1b2c3176f5a90d5d 24405552 400000000",
		"rotation":  "663a51f5a2baf4d19d87109520f8bd32 12984916 42000000",
		"worst":     "28b02ea4af4ddd7adb17618f875436c4 6145834 198000000",
	}
	for _, name := range Profiles() {
		p, err := Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		g, err := newGenerator(p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := fmt.Sprint(g.gen.Fingerprint(), " ", g.gen.ACount(), " ", g.gen.BCount()); got != want[name] {
			t.Errorf("%s is %s, was %q", name, got, want[name])
		}
	}
}
