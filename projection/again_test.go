package projection

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestBodyOfARecordReadAgain: AppendBodyOf gives the body that Append stored, of all kinds of specs, and nothing of a record that has
// another key, none, or no body; its time does not matter.
func TestBodyOfARecordReadAgain(t *testing.T) {
	specs := []SideSpec{
		{Key: []string{"$.id"}, Keep: keep("$.v")},
		{Key: []string{"@key", "$.id"}, Keep: keep("$.v", "$.deep.x")},
		{Key: []string{"$.id"}, KeyString: true},
		{Key: []string{"$.id"}, Store: "full", Keep: keep("$.v")},
		{Key: []string{"$.id"}, Store: "offset", Keep: keep("$.v"), Time: "$.t", TimeUnit: "ms"},
		{Key: []string{"$.id"}, Lenient: true, Keep: keep("$.v")},
		{Key: []string{"$.id"}, Lenient: true},
	}
	values := []string{`{"id":"k1","v":1,"t":5}`, `{"id":12,"v":{"a" : [1, 2]},"t":5}`, `{ "id":"\u006b1", "deep":{"x":"y"}, "t":7 }`, `{"v":3}`, `{"id":null}`, `{"id":[1]}`,
		`{"id":"k1","v":`, `{"id":"k1"} x`, `nonsense`, ``, `  `}
	rng := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for _, side := range specs {
		spec := mustCompile(t, side)
		dec, again := spec.NewDecoder(), spec.NewDecoder()
		for range 300 {
			rec := Record{Value: []byte(values[rng.IntN(len(values))]), Timestamp: 9}
			if rng.IntN(3) > 0 {
				rec.Key = []byte("k1")
			}
			var rows Rows
			dec.Append(&rows, &rec)
			key := rows.Key(0)
			if rows.Fate[0] != Accepted {
				key = []byte("sk1")
			}
			rec.Timestamp = -1
			got, ok := again.AppendBodyOf([]byte("dst"), &rec, key)
			want := "dst" + string(rows.BodyOf(0))
			if rows.Fate[0] != Accepted {
				want = "dst"
			}
			if rows.Fate[0] == BadTime { // is told by the first reading alone
				continue
			}
			if ok != (rows.Fate[0] == Accepted) || string(got) != want {
				t.Fatalf("%+v\n%s, key %q: %s, and again %v %q, want %q", side, rec.Value, key, rows.Fate[0], ok, got, want)
			}
			if ok {
				accepted++
				if got, ok := again.AppendBodyOf(nil, &rec, append(key[:len(key):len(key)], '!')); ok || len(got) > 0 {
					t.Fatalf("%s is taken for another key: %q", rec.Value, got)
				}
			}
		}
		for _, rec := range []Record{{Key: []byte("k1")}, {Key: []byte("k1"), Value: []byte(`{"id":"k1"}`), Damaged: true}} {
			if got, ok := again.AppendBodyOf(nil, &rec, []byte("sk1")); ok || len(got) > 0 {
				t.Errorf("%+v gives %q", rec, got)
			}
		}
	}
	if accepted < 300 {
		t.Error(fmt.Sprint(accepted, " were accepted"))
	}
}
