package results

import (
	"bytes"
	"strings"
	"testing"
)

// kafkaRecord is a run through a broker.
func kafkaRecord() *Record {
	rec := exampleRecord()
	rec.Kafka = &Kafka{Brokers: []string{"v4.0"}, Delivery: "exactly-once", Partitions: 4, RecordBytes: 1024, Compression: "lz4", Produced: 6_000_000, Consumed: 6_000_000,
		Rounds: []KafkaRound{
			{BarePerS: Known(600e3), ServePerS: Known(300e3), BareCPUNsPerB: Known(1000), ServeCPUNsPerB: Known(3000),
				Split: &KafkaSplit{CPUNs: Known(3000), SocketNs: Known(900), JSONNs: Known(700)}},
			{BarePerS: Known(500e3), ServePerS: Known(400e3), BareCPUNsPerB: Known(1200), ServeCPUNsPerB: Known(3400),
				Split: &KafkaSplit{CPUNs: Known(3400), SocketNs: Known(1300), CommitWaitNs: Known(40)}},
			{BarePerS: Known(800e3), ServePerS: Known(480e3)},
		},
		Lag: []KafkaLag{{0, 100}, {1e9, 350}, {2e9, 300}}}
	rec.Kafka.Derive()
	return rec
}

// TestKafkaDerive: what the rounds say together are medians, the ratio that of the rounds' own ratios.
func TestKafkaDerive(t *testing.T) {
	k := kafkaRecord().Kafka
	for name, v := range map[string]struct {
		got  *float64
		want float64
	}{
		"bare": {k.BarePerS, 600e3}, "serve": {k.ServePerS, 400e3}, "ratio": {k.Ratio, 0.6}, "a round's ratio": {k.Rounds[1].Ratio, 0.8},
		"cpu": {k.Split.CPUNs, 3200}, "socket": {k.Split.SocketNs, 1100}, "json": {k.Split.JSONNs, 700}, "commits": {k.Split.CommitWaitNs, 40}, "slope": {k.LagSlopePerS, 100},
	} {
		if v.got == nil || *v.got < v.want*0.999999 || *v.got > v.want*1.000001 {
			t.Errorf("%s is %v, want %v", name, orDash(v.got, plain), v.want)
		}
	}
	if k.LagMax == nil || *k.LagMax != 350 {
		t.Errorf("lag_max is %v", k.LagMax)
	}
	none := Kafka{}
	if none.Derive(); none.Split != nil || none.Ratio != nil || none.LagMax != nil {
		t.Errorf("figures of nothing: %+v", none)
	}
}

// TestKafkaReport: the report has the table and the split, and a threshold finds the ratio.
func TestKafkaReport(t *testing.T) {
	rec := kafkaRecord()
	var text bytes.Buffer
	if err := WriteText(&text, rec, 100, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"KAFKA", "median", "400.0 k/s", "600.0 k/s", "60.00 %", "socket and client", "350 records at most"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
	limits, err := ParseThresholds([]string{"kafka.ratio>=0.61", "kafka.bare_per_s>=600k", "kafka.split.cpu_ns<=4us"})
	if err != nil {
		t.Fatal(err)
	}
	rec.SetThresholds(limits)
	for i, want := range []bool{false, true, true} {
		if got := rec.Thresholds[len(rec.Thresholds)-3+i]; got.OK != want {
			t.Errorf("%+v", got)
		}
	}
}
