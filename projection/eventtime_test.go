package projection

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestRule06TimeFields(t *testing.T) {
	type c struct {
		unit, value string
		want        string // ms, or bad
	}
	const bad = "bad"
	cases := []c{
		{"ms", `0`, "0"}, {"ms", `-0`, "0"}, {"ms", `1700000000123`, "1700000000123"}, {"ms", `253402300799999`, "253402300799999"},
		{"ms", `253402300800000`, bad}, {"ms", `9223372036854775807`, bad}, {"ms", `18446744073709551617`, bad}, {"ms", `100000000000000000000000000000`, bad},
		{"ms", `-1`, bad}, {"ms", `1.0`, bad}, {"ms", `1.5`, bad}, {"ms", `1e3`, bad}, {"ms", `1E0`, bad}, {"ms", `-0.0`, bad}, {"ms", `"5"`, bad}, {"ms", `""`, bad},
		{"ms", `null`, bad}, {"ms", `true`, bad}, {"ms", `[5]`, bad}, {"ms", `{}`, bad}, {"ms", `"2023-11-14T22:13:20Z"`, bad},
		{"us", `0`, "0"}, {"us", `999`, "0"}, {"us", `1000`, "1"}, {"us", `1700000000123999`, "1700000000123"}, {"us", `253402300799999999`, "253402300799999"},
		{"us", `253402300800000000`, bad}, {"us", `-1`, bad}, {"us", `-0`, "0"},
		{"ns", `999999`, "0"}, {"ns", `1000000`, "1"}, {"ns", `1700000000123456789`, "1700000000123"}, {"ns", `253402300799999999999`, "253402300799999"},
		{"ns", `253402300800000000000`, bad}, {"ns", `-999999`, bad}, {"ns", `5`, "0"}, {"ns", `1.5`, bad},
		{"s", `0`, "0"}, {"s", `1700000000`, "1700000000000"}, {"s", `253402300799`, "253402300799000"}, {"s", `253402300800`, bad}, {"s", `999999999999999`, bad},
		{"s", `9223372036854775`, bad}, {"s", `-1`, bad}, {"s", `1700000000.5`, bad},
	}
	for value, want := range map[string]string{
		"1970-01-01T00:00:00Z": "0", "2023-11-14T22:13:20Z": "1700000000000", "2023-11-14T23:13:20+01:00": "1700000000000", "2023-11-14T16:43:20-05:30": "1700000000000",
		"2023-11-14t22:13:20z": "1700000000000", "2023-11-14T22:13:20.1Z": "1700000000100", "2023-11-14T22:13:20.1239999999999Z": "1700000000123",
		"2023-11-14T22:13:20.05+00:00": "1700000000050", "9999-12-31T23:59:59.999Z": "253402300799999", "9999-12-31T23:59:59.9999Z": "253402300799999",
		"2024-02-29T00:00:00Z": "1709164800000", "2000-02-29T00:00:00Z": "951782400000", "1970-01-01T01:00:00+01:00": "0", "2023-11-14T22:13:20-00:00": "1700000000000",

		"1969-12-31T23:59:59.999Z": bad, "1970-01-01T00:00:00+00:01": bad, "9999-12-31T23:59:59-00:01": bad, "0000-01-01T00:00:00Z": bad,
		"2023-02-29T00:00:00Z": bad, "1900-02-29T00:00:00Z": bad, "2023-04-31T00:00:00Z": bad, "2023-00-01T00:00:00Z": bad, "2023-13-01T00:00:00Z": bad,
		"2023-01-00T00:00:00Z": bad, "2023-01-32T00:00:00Z": bad, "2023-01-01T24:00:00Z": bad, "2023-01-01T00:60:00Z": bad, "2016-12-31T23:59:60Z": bad,
		"2023-11-14": bad, "2023-11-14T22:13:20": bad, "2023-11-14 22:13:20Z": bad, "2023-11-14T22:13:20.Z": bad, "2023-11-14T22:13:20.5": bad, "2023-11-14T22:13:20,5Z": bad,
		"2023-11-14T22:13:20+1:00": bad, "2023-11-14T22:13:20+0100": bad, "2023-11-14T22:13:20+24:00": bad, "2023-11-14T22:13:20+00:60": bad, "2023-11-14T22:13:20ZZ": bad,
		"2023-11-14T22:13:20+01:00Z": bad, "+023-11-14T22:13:20Z": bad, "2023-1-14T22:13:200Z": bad, "": bad, "1700000000000": bad, "2023-11-14T22:13Z000": bad, "２023-11-14T22:13:20Z": bad,
	} {
		cases = append(cases, c{"rfc3339", `"` + value + `"`, want})
	}
	cases = append(cases, c{"rfc3339", `"2023\u002d11-14T22:13:20\u005a"`, "1700000000000"}, c{"rfc3339", `1700000000`, bad}, c{"rfc3339", `null`, bad}, c{"rfc3339", `["2023-11-14T22:13:20Z"]`, bad})
	for _, c := range cases {
		s := mustCompile(t, SideSpec{Key: []string{"@key"}, Keep: keep("$.v"), Time: "$.t", TimeUnit: c.unit})
		want := "accepted " + c.want + " sk {}"
		if c.want == bad {
			want = "bad_time"
		}
		if got := decodeOne(s, Record{Key: []byte("k"), Value: []byte(`{"t":` + c.value + `}`)}); got != want {
			t.Errorf("%s %s: %s, want %s", c.unit, c.value, got, want)
		}
	}
	for _, unit := range []string{"ms", "us", "ns", "s", "rfc3339"} {
		s := mustCompile(t, SideSpec{Key: []string{"@key"}, Keep: keep("$.v"), Time: "$.t", TimeUnit: unit})
		if got := decodeOne(s, Record{Key: []byte("k"), Value: []byte(`{}`), Timestamp: 5}); got != "bad_time" {
			t.Errorf("%s, absent: %s", unit, got)
		}
	}
}

// TestRFC3339AgainstTime compares with package time over all years that count.
func TestRFC3339AgainstTime(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	for range 20_000 {
		text := fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02d", rng.IntN(10_000), rng.IntN(13), rng.IntN(33), rng.IntN(25), rng.IntN(61), rng.IntN(61))
		if rng.IntN(2) == 0 {
			text += fmt.Sprintf(".%0*d", 1+rng.IntN(9), rng.IntN(10))
		}
		if rng.IntN(2) == 0 {
			text += "Z"
		} else {
			text += fmt.Sprintf("%c%02d:%02d", "+-"[rng.IntN(2)], rng.IntN(24), rng.IntN(60))
		}
		want, err := time.Parse(time.RFC3339, text)
		got, ok := parseRFC3339([]byte(text))
		if ok != (err == nil) || (ok && got != want.UnixMilli()) {
			t.Fatalf("%s: %d %v, want %d %v", text, got, ok, want.UnixMilli(), err)
		}
	}
}
