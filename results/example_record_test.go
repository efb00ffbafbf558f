package results

import (
	"encoding/json"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// exampleRecord is a made-up run with every part filled in, so that renderings show all they can.
func exampleRecord() *Record {
	rec := &Record{
		Tool: Tool{Version: "0.1.0", Commit: "0123abc", Go: "go1.26.8", RocksDB: "9.10.0", JSONEngine: "sonic (amd64, jit)",
			BuildTags: []string{"grocksdb_no_link"}},
		Run: Run{ID: "1a2b3c4d", Profile: "quick", StartedAt: "2026-01-02T03:04:05Z", EndedAt: "2026-01-02T03:04:46Z",
			Complete: true, Argv: []string{"joinbench", "run", "--profile", "quick"}, Seed: 42,
			WorkloadFingerprint: "xxh3:9f86d081884c7d65", Tasks: 1,
			Config: json.RawMessage(`{"window":{"before":"0s","after":"4h"}}`), ConfigOrigin: map[string]string{"window.after": "file"}},
		Environment: Environment{HostID: "00000000deadbeef", OS: "linux", Arch: "amd64", CPU: "AMD EPYC 9005", Cores: 2, GOMAXPROCS: 2,
			NUMA: 1, Governor: "performance", Cgroup: Cgroup{CPUs: Known(2), MemoryBytes: new(int64(8 << 30))}, MemBytes: 24 << 30,
			THP: "madvise", Kernel: "6.18.44", Disk: "/dev/vda (not rotating)", FS: "ext4", GOGC: 100},
		Phases: []Phase{{"prepare", 0, 8_120_000_000, 1_000_000}, {"warm", 8_120_000_000, 4_050_000_000, 1_220_000},
			{"measure", 12_170_000_000, 27_400_000_000, 5_500_000}, {"drain", 39_570_000_000, 1_430_000_000, 0}},
		SteadyState: &SteadyState{Required: true, Attained: true, Samples: 55, BucketsSealed: 4, BucketsDropped: 3, Rotations: Known(0.1875),
			Criteria: []SteadyCriterion{{"probes_per_s", Known(0.0012), Known(0.018), Known(0.05)}}},
		Load: &Load{Mode: "closed", AchievedPerS: Known(182_481.7),
			Generator: Generator{CeilingPerS: Known(8_310_000), CPURatio: Known(0.12)}},
		Join: Join{
			Counters: Counters{
				A:       Side{Read: 1_250_000, Accepted: 1_249_958, Malformed: 12, Late: 30, Pending: 987_654},
				B:       Side{Read: 5_000_000, Accepted: 4_999_990, NullKey: 10},
				Outputs: 50_003, Matches: 50_003, Probes: 4_999_990, Lookups: 51_211, VsArm: Known(1562.2),
				Filter: Filter{Kind: "fuse16", Summary: true, BitsPerKey: Known(18.07), BytesPerRow: Known(2.41), AbsentQueries: 4_949_987, FalsePositives: 1_208,
					StalePositives: 17, FPPredicted: Known(0.000244), FilterQueries: 79_199_792, FilterFalsePositives: 1_208,
					BuildNs: 812_000_000},
				Buckets: Buckets{Open: 1, Sealed: 15, SealedTotal: 19, DroppedTotal: 3, DropMaxNs: 9_340_000},
			},
			Truth: &Truth{ExpectedMatches: 50_003, SealedPartnerProbes: 49_120},
		},
		Storage: Storage{BytesWritten: new(int64(201 << 20)), BytesRead: new(int64(77 << 20)), WriteAmp: Known(1.31),
			StallRatio: Known(0), PendingCompactionBytes: new(int64(0)), CFDrops: 3, CFDropMaxNs: 9_340_000},
		Cost: Cost{NsPerB: Known(81.04), NsPerA: Known(312.6), BackgroundNsPerA: Known(244.1), UnitNs: Known(28.02),
			RecordNsPerB: Known(812.4), GeneratorNsPerB: Known(120.3), RSSMaxBytes: new(int64(412<<20 + 345_678)),
			RSSFileMaxBytes: new(int64(1<<30 + 234<<20)), GoHeapBytes: new(int64(201 << 20)), RocksDBBytes: new(int64(64 << 20)),
			ArenaBytes: new(int64(31 << 20)), FilterBytes: new(int64(3_700_000)), IndexBytes: new(int64(20 << 20)),
			DiskMaxBytes: new(int64(367_001_600)), CPUSPerMillion: Known(0.9312), AllocsPerProbe: Known(0.0000312)},
		Steady: &Steady{MeasuredNs: 601_000_000_000, WarmUpNs: 60_100_000_000, Samples: 541,
			RSS:     SteadyLevel{389 << 20, 401 << 20, 412 << 20, Known(0.0031)},
			GoHeap:  SteadyLevel{160 << 20, 180 << 20, 201 << 20, Known(-0.012)},
			RocksDB: SteadyLevel{60 << 20, 62 << 20, 64 << 20, Known(0)}, Arenas: SteadyLevel{8 << 20, 12 << 20, 31 << 20, nil},
			Filters: SteadyLevel{3_600_000, 3_650_000, 3_700_000, Known(0.0001)}, Disk: SteadyLevel{320 << 20, 330 << 20, 350 << 20, Known(0.002)},
			MaxGapNs: 141_000_000, MaxGapEngineNs: 52_000_000, MaxEngineNs: 61_000_000, WriteStalls: new(int64(0))},
		Rotation: NewRotation(4, &Summary{Count: 1_204, P99Ns: 2_310_000, HDR: "HISTFAAAAA"}, &Summary{Count: 3_679, P99Ns: 1_400_000, HDR: "HISTFAAAAA"}),
		Recovery: &Recovery{Pending: 4_998_123, Unfiltered: 16, OpenNs: 150_000_000, OpenedNs: 171_000_000, EngineNs: 203_000_000,
			ReadyNs: new(int64(640_000_000)), ReadyAfterOpenNs: new(int64(469_000_000)), FiltersReadyNs: new(int64(2_310_000_000)),
			LookupsPerProbeBefore: Known(0.008209), LookupsSettledNs: new(int64(2_440_000_000))},
		Thresholds: []Threshold{{"join.filter.fp_ratio<0.0005", Known(0.000244), true, ""}, {"cost.ns_per_b<100", Known(81.04), true, ""}},
		Arms: []Arm{{Name: "fuse16", NsPerB: Known(81.04), RSSMaxBytes: new(int64(412 << 20)), Probes: 4_999_990, Matches: 50_003,
			Lookups: 51_211, LookupsPerProbe: Known(0.010242), FPRatio: Known(0.000244)},
			{Name: "none", NsPerB: Known(31_204), RSSMaxBytes: new(int64(398 << 20)), Probes: 4_999_990, Matches: 50_003,
				Lookups: 80_001_000, LookupsPerProbe: Known(16.0002)}},
		Drops: []Drop{
			{Epoch: 472_211, TNs: 17_300_000_000, DiskBeforeBytes: new(int64(367_001_600)), DiskAfterBytes: new(int64(344_064_000)), DropNs: 7_210_000},
			{Epoch: 472_212, TNs: 24_100_000_000, DiskBeforeBytes: new(int64(366_100_480)), DiskAfterBytes: new(int64(343_146_496)), DropNs: 9_340_000},
			{Epoch: 472_213, TNs: 31_000_000_000, DiskBeforeBytes: new(int64(365_363_200)), DiskAfterBytes: new(int64(342_491_136)), DropNs: 6_880_000}},
	}
	for i := range int64(41) {
		disk, phase := 8_000_000*i, "prepare"
		if i > 12 { // steady: rises, falls with each drop
			disk, phase = 340_000_000+i%7*4_000_000, "measure"
		}
		rec.Intervals = append(rec.Intervals, Interval{TNs: i * 1_000_000_000, Phase: phase, ProbesPerS: Known(182_000 + float64(i)),
			APerS: Known(45_000), Pending: 1_000_000, DiskBytes: new(disk), RSSBytes: new(int64(400 << 20))})
	}
	h := hdrhistogram.New(1, 60_000_000_000, 3)
	for i := range int64(1000) {
		h.RecordValue(1_000 * (i + 1))
	}
	s, err := Summarize(h)
	if err != nil {
		panic(err)
	}
	rec.Latency = &Latency{Service: s}
	rec.Join.Derive()
	rec.Verdict = Judge(rec)
	return rec
}

// brokenRecord is a run in which about everything went wrong that can.
func brokenRecord() *Record {
	rec := exampleRecord()
	rec.Run.Label = "after the rewrite"
	rec.Tool.Dirty, rec.Tool.RocksDBAssertions = true, true
	rec.Join.Matches, rec.Join.Missing, rec.Join.Spurious, rec.Join.Duplicated = 49_003, 1_003, 2, 1
	rec.Join.Filter.FalseNegatives, rec.Join.Filter.FalsePositives = 3, 9_208
	rec.Join.B.Read += 4
	rec.SteadyState.Attained = false
	rec.SteadyState.Reasons = []string{"pending drifts by +8.12 % and departs from its median by 4.400 %, of which 5.000 % is allowed"}
	rec.Thresholds[1] = Threshold{"cost.ns_per_b<50", Known(81.04), false, ""}
	rec.Join.ExpectedMatchRatio = Known(0.02)
	rec.Join.Derive()
	rec.Verdict = Judge(rec, Finding{Status: StatusInvalid, Reason: "the generator was the limit: 182 k/s achieved of 250 k/s offered " +
		"while the engine was idle 38 % of the time; give it more cores or lower the rate"})
	return rec
}
