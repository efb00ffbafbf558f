package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// The expected lines here are written out by hand from the rules; nothing is computed.

const (
	ms = time.Millisecond
	// hour keeps B in any order in time, where a test is not about lateness.
	hour = time.Hour
)

// plain is the configuration of most cases: value lines with k, t and id.
func plain(before, after, grace time.Duration, cardinality string) Config {
	side := Side{Key: []string{"$.k"}, Time: "$.t", Keep: []Field{{"id", "$.id"}}}
	return Config{A: side, B: side, Before: before, After: after, Grace: grace, Cardinality: cardinality}
}

func lines(l ...string) []byte { return []byte(strings.Join(l, "\n") + "\n") }

// kcat is one kcat line; key and payload are given as JSON text.
func kcat(partition int, offset, ts int64, key, payload string) string {
	return fmt.Sprintf(`{"topic":"t","partition":%d,"offset":%d,"tstype":"create","ts":%d,"key":%s,"payload":%s}`, partition, offset, ts, key, payload)
}

func TestByHand(t *testing.T) {
	recordKey := Side{Key: []string{"@key"}, Time: "@timestamp", Keep: []Field{{"id", "$.id"}}}
	byRecord := func(before, after, grace time.Duration, cardinality string) Config {
		return Config{A: recordKey, B: recordKey, Before: before, After: after, Grace: grace, Cardinality: cardinality}
	}
	withKey := func(c Config, keys ...string) Config { c.A.Key, c.B.Key = keys, keys; return c }
	stringKeysOnA := plain(0, 0, hour, OneToOne)
	stringKeysOnA.A.KeyString = true
	stringKeys := stringKeysOnA
	stringKeys.B.KeyString = true
	whole := plain(0, 0, hour, OneToOne)
	whole.A.Keep, whole.B.Keep = nil, nil
	kept := plain(0, 0, hour, OneToOne)
	kept.A.Keep = []Field{{"amount", "$.m.amount"}, {"gone", "$.gone"}, {"second", "$.list[1]"}, {"odd.name", `$["odd.name"]`}, {"n", "$.n"}}

	cases := []struct {
		name   string
		cfg    Config
		format string
		a, b   []byte
		want   []string
		ca, cb Counters
	}{
		{
			name: "rule 1: both ends of the window are inclusive",
			cfg:  plain(10*ms, 20*ms, hour, OneToMany),
			a:    lines(`{"k":"x","t":100,"id":1}`),
			b:    lines(`{"k":"x","t":89,"id":1}`, `{"k":"x","t":90,"id":2}`, `{"k":"x","t":120,"id":3}`, `{"k":"x","t":121,"id":4}`),
			want: []string{`{"key":"x","ts":100,"a":{"id":1},"b":{"id":2}}`, `{"key":"x","ts":120,"a":{"id":1},"b":{"id":3}}`},
			ca:   Counters{Read: 1, Accepted: 1}, cb: Counters{Read: 4, Accepted: 4},
		},
		{
			name: "B02: before=0, after=100",
			cfg:  plain(0, 100*ms, hour, OneToMany),
			a:    lines(`{"k":"k","t":100,"id":"a"}`),
			b:    lines(`{"k":"k","t":99,"id":"b99"}`, `{"k":"k","t":100,"id":"b100"}`, `{"k":"k","t":200,"id":"b200"}`, `{"k":"k","t":201,"id":"b201"}`),
			want: []string{`{"key":"k","ts":100,"a":{"id":"a"},"b":{"id":"b100"}}`, `{"key":"k","ts":200,"a":{"id":"a"},"b":{"id":"b200"}}`},
			ca:   Counters{Read: 1, Accepted: 1}, cb: Counters{Read: 4, Accepted: 4},
		},
		{
			name: "B02 the other way round: before=100, after=0",
			cfg:  plain(100*ms, 0, hour, OneToMany),
			a:    lines(`{"k":"k","t":200,"id":"a"}`),
			b:    lines(`{"k":"k","t":99,"id":"b99"}`, `{"k":"k","t":100,"id":"b100"}`, `{"k":"k","t":200,"id":"b200"}`, `{"k":"k","t":201,"id":"b201"}`),
			want: []string{`{"key":"k","ts":200,"a":{"id":"a"},"b":{"id":"b100"}}`, `{"key":"k","ts":200,"a":{"id":"a"},"b":{"id":"b200"}}`},
			ca:   Counters{Read: 1, Accepted: 1}, cb: Counters{Read: 4, Accepted: 4},
		},
		{
			name: "rule 2: one-to-one consumes the earliest A, whatever the order in the file, and B ask in theirs",
			cfg:  plain(50*ms, 50*ms, hour, OneToOne),
			a:    lines(`{"k":"k","t":30,"id":"a30"}`, `{"k":"k","t":10,"id":"a10"}`, `{"k":"k","t":20,"id":"a20"}`),
			b: lines(`{"k":"k","t":35,"id":"b1"}`, `{"k":"k","t":15,"id":"b2"}`, `{"k":"k","t":75,"id":"b3"}`, `{"k":"k","t":16,"id":"b4"}`,
				`{"k":"other","t":16,"id":"b5"}`),
			want: []string{`{"key":"k","ts":35,"a":{"id":"a10"},"b":{"id":"b1"}}`, `{"key":"k","ts":20,"a":{"id":"a20"},"b":{"id":"b2"}}`,
				`{"key":"k","ts":75,"a":{"id":"a30"},"b":{"id":"b3"}}`},
			ca: Counters{Read: 3, Accepted: 3}, cb: Counters{Read: 5, Accepted: 5},
		},
		{
			name: "rule 2: an A whose window is over does not stand in the way of a later one",
			cfg:  plain(0, 10*ms, hour, OneToOne),
			a:    lines(`{"k":"k","t":10,"id":"a10"}`, `{"k":"k","t":20,"id":"a20"}`),
			b:    lines(`{"k":"k","t":25,"id":"b1"}`, `{"k":"k","t":20,"id":"b2"}`, `{"k":"k","t":30,"id":"b3"}`),
			want: []string{`{"key":"k","ts":25,"a":{"id":"a20"},"b":{"id":"b1"}}`, `{"key":"k","ts":20,"a":{"id":"a10"},"b":{"id":"b2"}}`},
			ca:   Counters{Read: 2, Accepted: 2}, cb: Counters{Read: 3, Accepted: 3},
		},
		{
			name: "rule 2: of equal times the lowest partition, then the lowest offset", format: "kcat",
			cfg: byRecord(0, 0, 0, OneToOne),
			a: lines(kcat(2, 1, 5, `"k"`, `"{\"id\":\"p2o1\"}"`), kcat(1, 8, 5, `"k"`, `"{\"id\":\"p1o8\"}"`), kcat(1, 9, 5, `"k"`, `"{\"id\":\"p1o9\"}"`),
				kcat(2, 2, 5, `"k"`, `"{\"id\":\"p2o2\"}"`)),
			b: lines(kcat(0, 0, 5, `"k"`, `"{\"id\":0}"`), kcat(0, 1, 5, `"k"`, `"{\"id\":1}"`), kcat(0, 2, 5, `"k"`, `"{\"id\":2}"`)),
			want: []string{`{"key":"k","ts":5,"a":{"id":"p1o8"},"b":{"id":0}}`, `{"key":"k","ts":5,"a":{"id":"p1o9"},"b":{"id":1}}`,
				`{"key":"k","ts":5,"a":{"id":"p2o1"},"b":{"id":2}}`},
			ca: Counters{Read: 4, Accepted: 4}, cb: Counters{Read: 3, Accepted: 3},
		},
		{
			name: "rule 2: one-to-many gives every B the earliest A, and the A stays",
			cfg:  plain(0, 10*ms, hour, OneToMany),
			a:    lines(`{"k":"k","t":12,"id":"a12"}`, `{"k":"k","t":10,"id":"a10"}`),
			b:    lines(`{"k":"k","t":12,"id":"b1"}`, `{"k":"k","t":20,"id":"b2"}`, `{"k":"k","t":21,"id":"b3"}`, `{"k":"k","t":23,"id":"b4"}`),
			want: []string{`{"key":"k","ts":12,"a":{"id":"a10"},"b":{"id":"b1"}}`, `{"key":"k","ts":20,"a":{"id":"a10"},"b":{"id":"b2"}}`,
				`{"key":"k","ts":21,"a":{"id":"a12"},"b":{"id":"b3"}}`},
			ca: Counters{Read: 2, Accepted: 2}, cb: Counters{Read: 4, Accepted: 4},
		},
		{
			name: "rule 2: many-to-many is every pair (B13: equal times are several events)",
			cfg:  plain(0, 10*ms, hour, ManyToMany),
			a:    lines(`{"k":"k","t":5,"id":"a1"}`, `{"k":"k","t":5,"id":"a2"}`, `{"k":"k","t":5,"id":"a3"}`),
			b:    lines(`{"k":"k","t":6,"id":"b"}`),
			want: []string{`{"key":"k","ts":6,"a":{"id":"a1"},"b":{"id":"b"}}`, `{"key":"k","ts":6,"a":{"id":"a2"},"b":{"id":"b"}}`,
				`{"key":"k","ts":6,"a":{"id":"a3"},"b":{"id":"b"}}`},
			ca: Counters{Read: 3, Accepted: 3}, cb: Counters{Read: 1, Accepted: 1},
		},
		{
			name: "rule 8: at t+G = M in time, one ms behind late; on both sides; M does not go back",
			cfg:  plain(0, 1000*ms, 5*ms, OneToOne),
			a:    lines(`{"k":"z","t":100,"id":"az"}`, `{"k":"k","t":95,"id":"a95"}`, `{"k":"l","t":94,"id":"a94"}`, `{"k":"l","t":95,"id":"a95b"}`),
			b:    lines(`{"k":"k","t":205,"id":"b0"}`, `{"k":"l","t":200,"id":"b1"}`, `{"k":"z","t":199,"id":"b2"}`),
			want: []string{`{"key":"k","ts":205,"a":{"id":"a95"},"b":{"id":"b0"}}`, `{"key":"l","ts":200,"a":{"id":"a95b"},"b":{"id":"b1"}}`},
			ca:   Counters{Read: 4, Accepted: 3, Late: 1}, cb: Counters{Read: 3, Accepted: 2, Late: 1},
		},
		{
			name: "rule 8: lateness by the partition alone", format: "kcat",
			cfg:  byRecord(0, 1000*ms, 0, OneToOne),
			a:    lines(kcat(0, 0, 500, `"k"`, `"{\"id\":\"a500\"}"`), kcat(1, 0, 100, `"k"`, `"{\"id\":\"a100\"}"`), kcat(1, 1, 99, `"k"`, `"{\"id\":\"a99\"}"`)),
			b:    lines(kcat(1, 0, 600, `"k"`, `"{\"id\":1}"`)),
			want: []string{`{"key":"k","ts":600,"a":{"id":"a100"},"b":{"id":1}}`},
			ca:   Counters{Read: 3, Accepted: 2, Late: 1}, cb: Counters{Read: 1, Accepted: 1},
		},
		{
			name: "rule 9: null_key moves M; bad_key, bad_time, malformed and late do not",
			cfg:  plain(0, 0, 0, OneToOne),
			a: lines(`{"k":true,"t":900,"id":1}`, `{"k":"k","t":900.5,"id":2}`, `{"k":"k","t":900,"id":3`, `{"k":"k","t":10,"id":4}`, `{"t":20,"id":5}`,
				`{"k":"k","t":19,"id":6}`, `{"k":"k","t":20,"id":7}`),
			b:    lines(`{"k":"k","t":10,"id":8}`, `{"k":"k","t":20,"id":9}`),
			want: []string{`{"key":"k","ts":10,"a":{"id":4},"b":{"id":8}}`, `{"key":"k","ts":20,"a":{"id":7},"b":{"id":9}}`},
			ca:   Counters{Read: 7, Accepted: 2, BadKey: 1, BadTime: 1, Malformed: 1, NullKey: 1, Late: 1}, cb: Counters{Read: 2, Accepted: 2},
		},
		{
			name: "rule 9: the order in which fates are asked", format: "kcat",
			cfg: withKey(byRecord(0, 0, 0, OneToOne), "$.k"),
			a: lines(kcat(0, 5, 100, `null`, `"{\"k\":\"k\"}"`),
				kcat(0, 5, 100, `null`, `"{"`),             // redelivered before malformed
				kcat(0, 6, -1, `null`, `"{\"k\":[]"`),      // malformed before bad_key and bad_time
				kcat(0, 7, -1, `null`, `"{\"k\":[]}"`),     // bad_key before bad_time
				kcat(0, 8, -1, `null`, `"{}"`),             // bad_time before null_key
				kcat(0, 9, 99, `null`, `"{\"k\":null}"`),   // late before null_key
				kcat(0, 10, 100, `null`, `"{\"k\":null}"`), // null_key
				kcat(0, 3, 100, `null`, `"{\"k\":\"k\"}"`), // never seen, yet below the next offset
				kcat(0, 11, 100, `null`, `null`)),          // a tombstone in a stream is malformed
			b:  []byte{},
			ca: Counters{Read: 9, Accepted: 1, Redelivered: 2, Malformed: 2, BadKey: 1, BadTime: 1, Late: 1, NullKey: 1},
		},
		{
			name: "rule 3: redelivery after a rewind, per partition", format: "rpk",
			cfg: byRecord(0, 10*ms, 0, OneToOne),
			a: lines(`{"topic":"t","partition":0,"offset":0,"timestamp":1,"key":"k","value":"{\"id\":0}","headers":[]}`,
				`{"topic":"t","partition":0,"offset":1,"timestamp":1,"key":"k","value":"{\"id\":1}"}`,
				`{"topic":"t","partition":1,"offset":0,"timestamp":1,"key":"k","value":"{\"id\":2}"}`,
				`{"topic":"t","partition":0,"offset":0,"timestamp":1,"key":"k","value":"{\"id\":0}"}`,
				`{"topic":"t","partition":0,"offset":1,"timestamp":1,"key":"k","value":"{\"id\":1}"}`),
			b: lines(`{"topic":"t","partition":0,"offset":9,"timestamp":2,"key":"k","value":"{\"id\":9}"}`,
				`{"topic":"t","partition":0,"offset":9,"timestamp":2,"key":"k","value":"{\"id\":9}"}`,
				`{"topic":"t","partition":0,"offset":10,"timestamp":2,"key":"k","value":"{\"id\":10}"}`),
			want: []string{`{"key":"k","ts":2,"a":{"id":0},"b":{"id":9}}`, `{"key":"k","ts":2,"a":{"id":1},"b":{"id":10}}`},
			ca:   Counters{Read: 5, Accepted: 3, Redelivered: 2}, cb: Counters{Read: 3, Accepted: 2, Redelivered: 1},
		},
		{
			name: "B11: null and absent keys join nothing, the empty string is a key",
			cfg:  plain(0, 0, 0, OneToOne),
			a:    lines(`{"v":1,"t":1,"id":1}`, `{"k":null,"t":1,"id":2}`, `{"k":"","t":1,"id":3}`),
			b:    lines(`{"v":2,"t":1,"id":4}`, `{"k":null,"t":1,"id":5}`, `{"k":"","t":1,"id":6}`),
			want: []string{`{"key":"","ts":1,"a":{"id":3},"b":{"id":6}}`},
			ca:   Counters{Read: 3, Accepted: 1, NullKey: 2}, cb: Counters{Read: 3, Accepted: 1, NullKey: 2},
		},
		{
			name: "rule 4: numbers are their text and not the string of it",
			cfg:  plain(0, 0, 0, OneToOne),
			a: lines(`{"k":5,"t":1,"id":"n5"}`, `{"k":"5","t":1,"id":"s5"}`, `{"k":9007199254740993,"t":1,"id":"big"}`, `{"k":5.0,"t":1,"id":"n5.0"}`,
				`{"k":-1e-7,"t":1,"id":"e"}`),
			b: lines(`{"k":"5","t":1,"id":1}`, `{"k":5,"t":1,"id":2}`, `{"k":9007199254740992,"t":1,"id":3}`, `{"k":9007199254740993,"t":1,"id":4}`,
				`{"k":5e0,"t":1,"id":5}`, `{"k":-1e-7,"t":1,"id":6}`, `{"k":-1E-7,"t":1,"id":7}`),
			want: []string{`{"key":"5","ts":1,"a":{"id":"s5"},"b":{"id":1}}`, `{"key":5,"ts":1,"a":{"id":"n5"},"b":{"id":2}}`,
				`{"key":9007199254740993,"ts":1,"a":{"id":"big"},"b":{"id":4}}`, `{"key":-1e-7,"ts":1,"a":{"id":"e"},"b":{"id":6}}`},
			ca: Counters{Read: 5, Accepted: 5}, cb: Counters{Read: 7, Accepted: 7},
		},
		{
			name: "rule 4: key_type string on both sides",
			cfg:  stringKeys,
			a:    lines(`{"k":5,"t":1,"id":"n"}`),
			b:    lines(`{"k":"5.0","t":1,"id":0}`, `{"k":"5","t":1,"id":1}`),
			want: []string{`{"key":"5","ts":1,"a":{"id":"n"},"b":{"id":1}}`},
			ca:   Counters{Read: 1, Accepted: 1}, cb: Counters{Read: 2, Accepted: 2},
		},
		{
			name: "rule 4: key_type string on one side only",
			cfg:  stringKeysOnA,
			a:    lines(`{"k":5,"t":1,"id":"n"}`),
			b:    lines(`{"k":5,"t":1,"id":0}`, `{"k":"5","t":1,"id":1}`),
			want: []string{`{"key":"5","ts":1,"a":{"id":"n"},"b":{"id":1}}`},
			ca:   Counters{Read: 1, Accepted: 1}, cb: Counters{Read: 2, Accepted: 2},
		},
		{
			name: "rule 4: escapes in keys and names are decoded, kept values stay as written",
			cfg:  plain(0, 0, 0, OneToOne),
			a:    lines(`{"k":"k\u0031","t":1,"id":"\u0061"}`, `{"\u006b":"\ud83d\ude00\"\/\n","t":1,"id":"x"}`),
			b:    lines(`{"k":"\u006B1","t":1,"id":1}`, `{"k":"😀\u0022/\u000a","t":1,"id":2}`),
			want: []string{`{"key":"k1","ts":1,"a":{"id":"\u0061"},"b":{"id":1}}`, `{"key":"😀\"/\n","ts":1,"a":{"id":"x"},"b":{"id":2}}`},
			ca:   Counters{Read: 2, Accepted: 2}, cb: Counters{Read: 2, Accepted: 2},
		},
		{
			name: "rule 4: objects, arrays and booleans are bad keys",
			cfg:  plain(0, 0, 0, OneToOne),
			a:    lines(`{"k":{},"t":1}`, `{"k":[],"t":1}`, `{"k":true,"t":1}`, `{"k":false,"t":1}`, `{"k":["k"],"t":1}`),
			b:    lines(`{"k":{},"t":1}`),
			ca:   Counters{Read: 5, BadKey: 5}, cb: Counters{Read: 1, BadKey: 1},
		},
		{
			name: "rule 4: lone surrogates anywhere are malformed",
			cfg:  plain(0, 0, 0, OneToOne),
			a: lines(`{"k":"\ud800","t":1}`, `{"k":"k","t":1,"v":["\udc00"]}`, `{"k":"k","t":1,"\ud800":1}`, `{"k":"k","t":1,"v":"\ud800\ud800\udc00"}`,
				`{"k":"k","t":1,"v":"\ud800x"}`, `{"k":"k","t":1,"v":"\ud800\u0041"}`, `{"k":"k","t":1,"v":"\\ud800","id":1}`),
			b:    lines(`{"k":"k","t":1,"id":2}`),
			want: []string{`{"key":"k","ts":1,"a":{"id":1},"b":{"id":2}}`},
			ca:   Counters{Read: 7, Accepted: 1, Malformed: 6}, cb: Counters{Read: 1, Accepted: 1},
		},
		{
			name: "rule 4: of a path list a JSON null exists, an absent path and a null record key do not", format: "kcat",
			cfg: withKey(byRecord(0, 0, 0, OneToMany), "$.k", "@key", "$.alt"),
			a:   lines(kcat(0, 0, 1, `"k"`, `"{\"id\":\"a\"}"`)),
			b: lines(kcat(0, 0, 1, `"k"`, `"{\"id\":0,\"k\":null}"`), kcat(0, 1, 1, `"k"`, `"{\"id\":1,\"alt\":\"no\"}"`), kcat(0, 2, 1, `null`, `"{\"id\":2,\"alt\":\"k\"}"`),
				kcat(0, 3, 1, `"no"`, `"{\"id\":3,\"k\":\"k\"}"`), kcat(0, 4, 1, `null`, `"{\"id\":4}"`), kcat(0, 5, 1, `"k"`, `"{\"id\":5,\"k\":{}}"`), kcat(0, 6, 1, `""`, `"{\"id\":6,\"alt\":\"k\"}"`)),
			want: []string{`{"key":"k","ts":1,"a":{"id":"a"},"b":{"id":1}}`, `{"key":"k","ts":1,"a":{"id":"a"},"b":{"id":2}}`, `{"key":"k","ts":1,"a":{"id":"a"},"b":{"id":3}}`},
			ca:   Counters{Read: 1, Accepted: 1}, cb: Counters{Read: 7, Accepted: 4, NullKey: 2, BadKey: 1},
		},
		{
			name: "B60: of duplicate names the first counts, for key, time, kept field and on the way to them",
			cfg:  withKey(plain(0, 0, hour, OneToOne), "$.o.k"),
			a:    lines(`{"o":{"k":"a","k":"b"},"o":{"k":"c"},"t":7,"t":8,"id":1,"\u0069d":2}`),
			b:    lines(`{"o":{"k":"b"},"t":7,"id":3}`, `{"o":{"k":"c"},"t":7,"id":4}`, `{"o":{"k":"a"},"t":8,"id":5}`, `{"o":{"k":"a"},"t":7,"id":6}`),
			want: []string{`{"key":"a","ts":7,"a":{"id":1},"b":{"id":6}}`},
			ca:   Counters{Read: 1, Accepted: 1}, cb: Counters{Read: 4, Accepted: 4},
		},
		{
			name: "B60: a first name that leads nowhere is not passed over",
			cfg:  withKey(plain(0, 0, hour, OneToOne), "$.o.k"),
			a:    lines(`{"o":5,"o":{"k":"c"},"t":7,"id":1}`),
			b:    lines(`{"o":{"k":"c"},"t":7,"id":4}`),
			ca:   Counters{Read: 1, NullKey: 1}, cb: Counters{Read: 1, Accepted: 1},
		},
		{
			name: "B59 and rule 5: what is not one whole valid JSON value",
			cfg:  plain(0, 0, 0, OneToOne),
			a: lines(`{"k":"k1","t":1`, `{"k":"k1","t":1} trailing`, `{"k":"k1","t":1,"bad":}`, `{"bad":"\x","k":"k1","t":1}`, `{"bad":[1,,2],"k":"k1","t":1}`,
				`{"k":"k1","t":1}{"k":"k2","t":1}`, ``, `   `, "\ufeff"+`{"k":"k1","t":1}`, "{\"k\":\"k1\",\"t\":1,\"v\":\"\xff\"}", "{\"k\":\"k1\",\"t\":1,\"v\":\"\xed\xa0\x80\"}",
				"{\"k\":\"k1\",\"t\":1,\"v\":\"\x01\"}", `{"k":"k1","t":01}`, "\t {\"k\" : \"k1\",\"t\" : 1 , \"id\" : [ 1 , \"a b\" ] }\r"),
			b:    []byte(`{"k":"k1","t":1,"id":2}`), // no newline at the end
			want: []string{`{"key":"k1","ts":1,"a":{"id":[1,"a b"]},"b":{"id":2}}`},
			ca:   Counters{Read: 14, Accepted: 1, Malformed: 13}, cb: Counters{Read: 1, Accepted: 1},
		},
		{
			name: "values that are JSON but no objects have no fields; offset of a value line = its number",
			cfg:  plain(0, 0, 0, OneToOne),
			a:    lines(`null`, `5`, `[]`, `"k"`),
			b:    []byte{},
			ca:   Counters{Read: 4, BadTime: 4},
		},
		{
			name: "rule 9: bad times",
			cfg:  plain(0, 0, 0, OneToOne),
			a: lines(`{"k":"k","id":1}`, `{"k":"k","t":null}`, `{"k":"k","t":"5"}`, `{"k":"k","t":1.5}`, `{"k":"k","t":-1}`, `{"k":"k","t":253402300800000}`,
				`{"k":"k","t":9223372036854775808}`, `{"k":"k","t":99999999999999999999999}`, `{"k":"k","t":true}`, `{"k":"k","t":0,"id":"zero"}`,
				`{"k":"k","t":253402300799999,"id":"last"}`),
			b:    lines(`{"k":"k","t":0,"id":1}`, `{"k":"k","t":253402300799999,"id":2}`),
			want: []string{`{"key":"k","ts":0,"a":{"id":"zero"},"b":{"id":1}}`, `{"key":"k","ts":253402300799999,"a":{"id":"last"},"b":{"id":2}}`},
			ca:   Counters{Read: 11, Accepted: 2, BadTime: 9}, cb: Counters{Read: 2, Accepted: 2},
		},
		{
			name: "B21: bad record times move nothing, the offsets go on", format: "kcat",
			cfg:  byRecord(0, 0, 0, OneToOne),
			a:    lines(kcat(0, 0, -1, `"k"`, `"{}"`), kcat(0, 1, 0, `"k"`, `"{\"id\":\"a\"}"`), kcat(0, 2, 9223372036854775807, `"k"`, `"{}"`), kcat(0, 2, 0, `"k"`, `"{}"`)),
			b:    lines(kcat(0, 0, 0, `"k"`, `"{\"id\":\"b\"}"`)),
			want: []string{`{"key":"k","ts":0,"a":{"id":"a"},"b":{"id":"b"}}`},
			ca:   Counters{Read: 4, Accepted: 1, BadTime: 2, Redelivered: 1}, cb: Counters{Read: 1, Accepted: 1},
		},
		{
			name: "lines that are no envelopes", format: "kcat",
			cfg: byRecord(0, 0, 0, OneToOne),
			a: lines(``, `not json`, `[]`, `{}`, kcat(0, 0, 1, `"k"`, `"{\"id\":1}"`)[1:], `{"topic":"t","partition":0,"offset":`,
				kcat(0, 4, 1, `"k"`, `"{\"id\":7}"`)),
			b:    lines(kcat(0, 0, 1, `"k"`, `"{\"id\":8}"`)),
			want: []string{`{"key":"k","ts":1,"a":{"id":7},"b":{"id":8}}`},
			ca:   Counters{Read: 7, Accepted: 1, Malformed: 6}, cb: Counters{Read: 1, Accepted: 1},
		},
		{
			name: "an envelope's payload is decoded before it is read: line breaks in it are whitespace, a NUL is not", format: "kcat",
			cfg: byRecord(0, 0, 0, OneToOne),
			a:   lines(kcat(0, 0, 1, `"\u006b\u0022"`, `"{\n\u0022id\u0022 : \"\\u0061\"\r\n}"`), kcat(0, 1, 1, `"k"`, `"{}\u0000"`)),
			b:   lines(kcat(0, 0, 1, `"k\""`, `"{\"id\":8}"`)),
			want: []string{
				`{"key":"k\"","ts":1,"a":{"id":"\u0061"},"b":{"id":8}}`},
			ca: Counters{Read: 2, Accepted: 1, Malformed: 1}, cb: Counters{Read: 1, Accepted: 1},
		},
		{
			name: "rule 23: kept fields in the order of the list, absent ones left out, null is there",
			cfg:  kept,
			a:    lines(`{"n":null,"k":"k","t":1,"list":[1,{"z" : "\u00e9"}],"odd.name":1.50,"m":{"amount" : -0.0E+1}}`),
			b:    lines(`{"k":"k","t":1}`),
			want: []string{`{"key":"k","ts":1,"a":{"amount":-0.0E+1,"second":{"z":"\u00e9"},"odd.name":1.50,"n":null},"b":{}}`},
			ca:   Counters{Read: 1, Accepted: 1}, cb: Counters{Read: 1, Accepted: 1},
		},
		{
			name: "an empty keep list keeps the whole value as written",
			cfg:  whole,
			a:    lines(` { "k" : "k" , "t" : 1, "d" : "a  b", "d" : [ ] } `),
			b:    lines(`{"t":1,"k":"\u006b","<":"&"}`),
			want: []string{`{"key":"k","ts":1,"a":{"k":"k","t":1,"d":"a  b","d":[]},"b":{"t":1,"k":"\u006b","<":"&"}}`},
			ca:   Counters{Read: 1, Accepted: 1}, cb: Counters{Read: 1, Accepted: 1},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.format == "" {
				c.format = "value"
			}
			e, err := Expect(c.cfg, c.a, c.b, c.format)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(e.Lines, c.want) {
				t.Errorf("lines:\n%s\nwant:\n%s", strings.Join(e.Lines, "\n"), strings.Join(c.want, "\n"))
			}
			if e.CountersA != c.ca {
				t.Errorf("a: %+v, want %+v", e.CountersA, c.ca)
			}
			if e.CountersB != c.cb {
				t.Errorf("b: %+v, want %+v", e.CountersB, c.cb)
			}
			if !e.Exact {
				t.Error("not exact, though no B of different partitions compete")
			}
			if len(e.Pairs) != len(e.Lines) {
				t.Errorf("%d pairs for %d lines", len(e.Pairs), len(e.Lines))
			}
		})
	}
}

func TestTimeUnits(t *testing.T) {
	for _, c := range []struct {
		unit, text string
		want       int64 // -1 = bad time
	}{
		{"ms", "1700000000123", 1700000000123}, {"", "7", 7}, {"s", "1700000000", 1700000000000}, {"s", "253402300800", -1},
		{"s", "9223372036854775807", -1}, {"us", "1700000000123999", 1700000000123}, {"us", "999", 0}, {"ns", "1700000000123999999", 1700000000123},
		{"ns", "16725225600000000000", 16725225600000}, // past 2^63 ns and yet before the year 10000
		{"ns", "253402300800000000000", -1}, {"us", "-1", -1}, {"ms", "1.0e3", -1},
		{"rfc3339", `"2023-11-14T22:13:20.123999Z"`, 1700000000123}, {"rfc3339", `"2023-11-15T00:13:20+02:00"`, 1700000000000},
		{"rfc3339", `"9999-12-31T23:59:59.999Z"`, 253402300799999}, {"rfc3339", `"1970-01-01T00:00:00Z"`, 0}, {"rfc3339", `"1969-12-31T23:59:59Z"`, -1},
		{"rfc3339", `"2023-02-30T00:00:00Z"`, -1}, {"rfc3339", "1700000000123", -1}, {"rfc3339", `"2023-11-14T22:13:20"`, -1}, {"rfc3339", "null", -1},
	} {
		cfg := plain(0, 0, 0, OneToOne)
		cfg.A.TimeUnit = c.unit
		e, err := Expect(cfg, lines(`{"k":"k","t":`+c.text+`}`), lines(fmt.Sprintf(`{"k":"k","t":%d}`, c.want)), "value")
		if err != nil {
			t.Fatal(err)
		}
		want := []string{fmt.Sprintf(`{"key":"k","ts":%d,"a":{},"b":{}}`, c.want)}
		if c.want < 0 {
			want = nil
		}
		if !slices.Equal(e.Lines, want) || (c.want < 0) != (e.CountersA.BadTime == 1) {
			t.Errorf("%s %s: lines %v, counters %+v", c.unit, c.text, e.Lines, e.CountersA)
		}
	}
}

func TestPaths(t *testing.T) {
	v, err := parseJSON([]byte(`{"a":{"b":[{"odd.name":"x"},[1,2]]},"":{"e":3},"q\"]":4,"n":null}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"$.a.b[0]": `{"odd.name":"x"}`, `$.a.b[0]["odd.name"]`: `"x"`, "$.a.b[1][1]": "2", `$["a"]["b"][1][0]`: "1", `$[""].e`: "3",
		"$.n": "null", "$.a.b[2]": "", "$.a[0]": "", "$.a.b.b": "", "$.n.x": "", "$.z": "",
	} {
		p, err := parsePath(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, ok := v.at(p)
		if ok != (want != "") || ok && got.compact() != want {
			t.Errorf("%s: %q, want %q", text, got.raw, want)
		}
	}
	for _, bad := range []string{"", "a", ".a", "$a", "$.", "$..a", "$.a.", "$[", "$[]", "$[-1]", "$[x]", `$["a]`, `$["a"`, "$.a[0", "@timestamp"} {
		if _, err := parsePath(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestRefusals(t *testing.T) {
	good := plain(0, 0, 0, OneToOne)
	for name, change := range map[string]func(*Config){
		"cardinality": func(c *Config) { c.Cardinality = "some-to-many" },
		"before":      func(c *Config) { c.Before = -ms },
		"grace":       func(c *Config) { c.Grace = time.Microsecond },
		"no key":      func(c *Config) { c.A.Key = nil },
		"key":         func(c *Config) { c.B.Key = []string{"k"} },
		"time":        func(c *Config) { c.B.Time = "arrival" },
		"unit":        func(c *Config) { c.B.TimeUnit = "min" },
		"keep":        func(c *Config) { c.A.Keep = []Field{{"x", "x"}} },
		"no name":     func(c *Config) { c.A.Keep = []Field{{"", "$.x"}} },
	} {
		c := good
		change(&c)
		if _, err := Expect(c, nil, nil, "value"); err == nil {
			t.Errorf("%s: not refused", name)
		} else if name != "no name" && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Expect(good, nil, nil, "csv"); err == nil {
		t.Error("format not refused")
	}
	if e, err := Expect(good, nil, nil, "value"); err != nil || len(e.Lines) != 0 || !e.Exact {
		t.Errorf("empty files: %+v, %v", e, err)
	}
}
