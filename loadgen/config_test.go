package loadgen

import (
	"math"
	"strings"
	"testing"
	"time"
)

// small is a workload in which everything happens.
func small() Config {
	return Config{
		Seed: 1, Pending: 10_000, AEventsPerSec: 100, BEventsPerSec: 1000, BEvents: 50_000,
		MatchRate: 0.05, Duplicates: 0.02, Expired: 0.02, LateShareA: 0.05, LateShareB: 0.03,
		Grace: 2 * time.Second, Disorder: time.Second, Before: time.Second, After: 100 * time.Second,
		Ages:        []time.Duration{10 * time.Second, 40 * time.Second, 80 * time.Second},
		PartitionsA: 3, PartitionsB: 4,
	}
}

func TestValidateNamesTheFault(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   []string
	}{
		{func(c *Config) { c.Pending = 0; c.AEventsPerSec = 1 }, []string{"pending 0 is not between"}},
		{func(c *Config) { c.Pending = -5 }, []string{"pending -5"}},
		{func(c *Config) { c.BEvents = -1 }, []string{"b_events -1"}},
		{func(c *Config) { c.AEventsPerSec = -2 }, []string{"a_events_per_sec -2"}},
		{func(c *Config) { c.BEventsPerSec = math.NaN() }, []string{"b_events_per_sec NaN"}},
		{func(c *Config) { c.BEventsPerSec = 1e12 }, []string{"b_events_per_sec 1e+12"}},
		{func(c *Config) { c.PartitionsA = -1 }, []string{"partitions_a -1"}},
		{func(c *Config) { c.PartitionsB = 1 << 20 }, []string{"partitions_b 1048576"}},
		{func(c *Config) { c.MatchRate = 1.1 }, []string{"match_rate 1.1 is not between 0 and 1"}},
		{func(c *Config) { c.MatchRate = math.NaN() }, []string{"match_rate NaN"}},
		{func(c *Config) { c.LateShareA = 0.6; c.LateShareB = -1 }, []string{"late_share_a 0.6", "late_share_b -1"}},
		{func(c *Config) { c.Zipf = 4.5 }, []string{"zipf 4.5 is not between 0 and 4"}},
		{func(c *Config) { c.MatchRate = 0 }, []string{"duplicates 0.02 have nothing to repeat"}},
		{func(c *Config) { c.OneToMany = true; c.MatchRate = 0.02 }, []string{"duplicates 0.02 leave nothing of match_rate 0.02"}},
		{func(c *Config) { c.MatchRate = 0.9; c.Duplicates = 0.2 }, []string{"shares of B add up to 1.15"}},
		{func(c *Config) { c.MatchRate = 0.2 }, []string{"needs 200 new partners per second", "only 95 A/s are in time"}},
		{func(c *Config) { c.Disorder = 1001 * time.Millisecond }, []string{"disorder 1.001s exceeds half of grace 2s"}},
		{func(c *Config) { c.Grace = 2*time.Second + 1 }, []string{"grace 2.000000001s is not a whole number of ms"}},
		{func(c *Config) { c.Before = -time.Second }, []string{"before -1s"}},
		{func(c *Config) { c.After = 0 }, []string{"after 0s must be greater than 0"}},
		{func(c *Config) { c.Ages = []time.Duration{94 * time.Second} }, []string{"match age 1m34s is not less than after - 3*grace = 1m34s"}},
		{func(c *Config) { c.Ages = []time.Duration{-time.Second} }, []string{"match age -1s: a B so long before its A needs before - 3*grace to be more than 1s, and it is"}},
		{func(c *Config) { c.Ages = []time.Duration{500 * time.Millisecond} }, []string{"match age 500ms cannot be kept", "disorder 1s"}},
		{func(c *Config) { c.Ages = make([]time.Duration, 2000) }, []string{"2000 match ages"}},
		{func(c *Config) { c.KeyBytes = 15 }, []string{"key_bytes 15 is not between 16"}},
		{func(c *Config) { c.KeyShape = ShapeUUID; c.KeyBytes = 20 }, []string{"key_bytes 20: a key of shape uuid has 36"}},
		{func(c *Config) { c.KeyShape = 9 }, []string{"key shape 9 is unknown"}},
		{func(c *Config) { c.RecordBytes = 20 }, []string{"record_bytes 20 is not between"}},
		{func(c *Config) { c.RecordBytes = -1 }, []string{"record_bytes -1"}},
		{func(c *Config) { c.BEventsPerSec = 0.001; c.BEvents = 1 << 37 }, []string{"spans"}},
		{func(c *Config) {
			c.Pending = 1 << 37
			c.AEventsPerSec, c.BEventsPerSec, c.BEvents = 1e8, 1, 1e7
		}, []string{"A records"}},
	} {
		cfg := small()
		c.change(&cfg)
		_, err := New(cfg)
		if err == nil {
			t.Errorf("%q: no error", c.want)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		}
	}
	if err := small().WithDefaults().Validate(); err != nil {
		t.Errorf("the base case is refused: %v", err)
	}
}

func TestDeriveRates(t *testing.T) {
	c := Config{Pending: 5_000_000, BEvents: 1_000_000, MatchRate: 0.01, After: 4 * time.Hour, Grace: 10 * time.Second}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	c = g.Config()
	if got, want := c.AEventsPerSec*c.After.Seconds(), 5e6; abs(got-want) > 1e-6 {
		t.Errorf("A rate x after = %g, want pending %g", got, want)
	}
	if got := c.MatchRate * c.BEventsPerSec / c.AEventsPerSec; abs(got-0.5) > 1e-9 {
		t.Errorf("%g of the A find a partner, want half", got)
	}
	// What comes in during one window is what is pending.
	if n := stepIndex(ms(c.After), g.a.step); n < 4_999_000 || n > 5_001_000 {
		t.Errorf("%d A come in one window, want 5 million", n)
	}
}
