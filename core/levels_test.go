package core

import (
	"context"
	"testing"

	"joinbench/buckets"
)

// sized is a store that says how large it is.
type sized struct{ buckets.Backend }

func (sized) DiskBytes() int64   { return 1000 }
func (sized) MemoryBytes() int64 { return 10 }

// TestLevelsOfOneStore: the rings of a task share a store, which counts once, and tasks add up.
func TestLevelsOfOneStore(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"inner":   func(*Config) {},
		"waiting": func(c *Config) { c.Probe = ProbeWait },
		"groups":  func(c *Config) { c.Cardinality, c.Collect = OneToMany, CollectTimeout },
	} {
		cfg := &Config{After: 100, MaxSpread: 20, Width: 50, Slots: 8, BatchSize: 10, Inline: true}
		change(cfg)
		stores := memStores(2)
		for i := range stores {
			stores[i] = sized{stores[i]}
		}
		e := open(t, cfg, stores, newScript(t, 4, []scriptPart{times(0, "k", 1, 2)}, []scriptPart{times(0, "k", 3)}), &joined{})
		must(t, e.Run(context.Background()))
		if l := e.Levels(true); l.DiskBytes != 2000 || l.StoreBytes != 20 {
			t.Errorf("%s: %d bytes on disk and %d in RAM, want 2000 and 20", name, l.DiskBytes, l.StoreBytes)
		}
		must(t, e.Close())
	}
}
