package projection

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/bytedance/sonic"
	"github.com/bytedance/sonic/ast"
)

// small and large are payment-like records of some 300 and 900 bytes, as a compact producer writes them; spaced is the small one
// as Python's json.dumps writes it.
const small = `{"event_id":"3f8a1c9e-77b2-4c0d-9a51-0d2be1f0c7aa","type":"payment.captured","payment_ref":"PAY-000012345678","amount":12999,"currency":"EUR","ts":1700000012345,"status":"confirmed","customer":{"id":"C-9912873","country":"DE"},"method":"card","attempt":1,"fees":[29,12.5],"test":false,"note":null}`

var large = strings.TrimSuffix(small, "}") + `,"merchant":{"id":"M-448812","name":"Käsehaus Müller & Söhne GmbH","mcc":"5411","address":{"street":"Lange Straße 17","city":"Göttingen","zip":"37073","country":"DE"}},"lines":[{"sku":"SKU-0019283","qty":2,"price":4500,"title":"Alpine cheese, aged 12 months, 500 g"},{"sku":"SKU-0077123","qty":1,"price":3999,"title":"Wooden board \"Eiche\", oiled"}],"risk":{"score":0.0173,"model":"rf-2024-11","flags":["velocity_ok","bin_match","avs_y"]},"trace":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","user_agent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36"}`

var spaced = strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace(small)

var benchDocs = []string{small, large, spaced}

var benchSpecs = []struct {
	name string
	side SideSpec
}{
	{"A/path", SideSpec{Key: []string{"$.payment_ref"}, Time: "$.ts", TimeUnit: "ms", Keep: keep("$.amount", "$.status")}},
	{"B/key", SideSpec{Key: []string{"@key"}, Time: "@timestamp", Keep: keep("$.status")}},
	{"B/path", SideSpec{Key: []string{"$.payment_ref"}, Time: "$.ts", TimeUnit: "ms", Keep: keep("$.status")}},
	{"B/watched", SideSpec{Key: []string{"$.payment_ref"}, Time: "$.ts", TimeUnit: "ms", Keep: keep("$.status"), Ends: &Test{"$.status", "declined"}}},
	{"B/whole", SideSpec{Key: []string{"@key"}, Time: "@timestamp"}},
	{"A/lenient", SideSpec{Key: []string{"$.payment_ref"}, Time: "$.ts", TimeUnit: "ms", Keep: keep("$.amount", "$.status"), Lenient: true}},
}

const benchBatch = 1024

// BenchmarkDecode is raw record to row, per record.
func BenchmarkDecode(b *testing.B) {
	for _, spec := range benchSpecs {
		s := mustCompile(b, spec.side)
		for i, doc := range benchDocs {
			b.Run(fmt.Sprintf("%s/%s-%dB", spec.name, []string{"small", "large", "spaced"}[i], len(doc)), func(b *testing.B) {
				d, rows := s.NewDecoder(), &Rows{}
				rec := Record{Key: []byte("PAY-000012345678"), Value: []byte(doc), Timestamp: 1700000012345}
				b.SetBytes(int64(len(doc)))
				b.ReportAllocs()
				for b.Loop() {
					if rows.Len() == benchBatch {
						rows.Reset()
					}
					d.Append(rows, &rec)
				}
				if rows.Len() > 0 && rows.Fate[0] != Accepted {
					b.Fatal(rows.Fate[0])
				}
			})
		}
	}
}

// BenchmarkEngines compares the ways to check a document and to find 0, 1 or 4 fields in it: ours in one pass, and sonic's
// check and look-ups, which each are a pass of their own (and let more pass, see doc.go).
func BenchmarkEngines(b *testing.B) {
	paths := []string{"payment_ref", "ts", "amount", "status"}
	for _, doc := range benchDocs[:2] {
		text := []byte(doc)
		for _, fields := range []int{0, 1, 4} {
			p := newPlan()
			for _, name := range paths[:fields] {
				path, err := ParsePath("$." + name)
				if err != nil {
					b.Fatal(err)
				}
				p.add(path)
			}
			s := newScanner(p)
			name := func(engine string) string { return fmt.Sprintf("%dB/fields-%d/%s", len(doc), fields, engine) }
			b.Run(name("scan"), func(b *testing.B) {
				for b.Loop() {
					if !s.scan(text) {
						b.Fatal("not valid")
					}
				}
			})
			b.Run(name("sonic"), func(b *testing.B) {
				searcher := ast.NewSearcher(doc)
				searcher.ValidateJSON = false
				for b.Loop() {
					if !sonic.Valid(text) {
						b.Fatal("not valid")
					}
					sonicGet(b, searcher, paths[:fields])
				}
			})
			if fields > 0 {
				b.Run(name("scanLoose"), func(b *testing.B) {
					for b.Loop() {
						s.scanLoose(text)
					}
				})
				b.Run(name("sonicGet"), func(b *testing.B) {
					searcher := ast.NewSearcher(doc)
					searcher.ValidateJSON = false
					for b.Loop() {
						sonicGet(b, searcher, paths[:fields])
					}
				})
			}
		}
		b.Run(fmt.Sprintf("%dB/fields-0/encoding-json", len(doc)), func(b *testing.B) {
			for b.Loop() {
				if !json.Valid(text) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

func sonicGet(b *testing.B, s *ast.Searcher, names []string) {
	for _, name := range names {
		if _, err := s.GetByPath(name); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendKey(b *testing.B) {
	dst := make([]byte, 0, 64)
	for b.Loop() {
		dst = AppendKey(dst[:0], []byte("sPAY-000012345678"))
	}
}

// TestNoAllocations: decoding and printing allocate nothing once the rows have their size, whatever the record.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("not countable under the race detector")
	}
	docs := append([]string{small, large, spaced, `{"payment_ref":"\u0041\n","ts":1,"amount":[ 1 ],"status":"\ud83d\ude00","\u0074s":2}`, `{"ts":"2023-11-14T22:13:20Z"}`}, malformed...)
	sides := []SideSpec{
		{Key: []string{"$.payment_ref"}, Time: "$.ts", TimeUnit: "rfc3339", Keep: keep("$.amount")},
		{Key: []string{"@key"}, Time: "arrival"},
		{Key: []string{"@key"}, Time: "arrival", Lenient: true},
		{Key: []string{"@key", "$.payment_ref"}, Store: "full", Keep: keep("$.status", "$.customer")},
		{Key: []string{"@key"}, Ends: &Test{"$.status", "😀"}, Marks: &Test{"$.payment_ref", "A\n"}, Count: "$.attempt"},
	}
	for _, spec := range benchSpecs {
		sides = append(sides, spec.side)
	}
	for i, side := range sides {
		s := mustCompile(t, side)
		d, rows := s.NewDecoder(), &Rows{}
		var out []byte
		batch := func() {
			rows.Reset()
			for j, doc := range docs {
				rec := Record{Key: []byte("k"), Value: []byte(doc), Timestamp: 5}
				if j%2 == 0 {
					rec.Key = nil
				}
				d.Append(rows, &rec)
				out = AppendKey(out[:0], rows.Key(j))
				out = s.AppendOutput(out, rows.BodyOf(j))
			}
		}
		copies := testing.AllocsPerRun(20, func() {
			for _, doc := range docs {
				sink = []byte(doc)
			}
		})
		if n := testing.AllocsPerRun(20, batch); n > copies {
			t.Errorf("side %d: %v allocations for %d records, %v of them the test's own", i, n, len(docs), copies)
		}
	}
}

var sink []byte
