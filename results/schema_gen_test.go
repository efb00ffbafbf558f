package results

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"joinbench/internal/schemagen"
)

// makeSchema is the schema of major version 1 of the record, whatever its minor version.
func makeSchema() ([]byte, error) {
	statuses := []string{"", StatusOK} // "" is what a record has that never got that far
	for _, r := range ranked {
		statuses = append(statuses, r.status)
	}
	return schemagen.Make(schemagen.Spec{ID: "urn:joinbench:schema:result:1", Title: "joinbench result " + SchemaVersion, Root: reflect.TypeFor[Record](),
		Dir: ".", Schema: Schema, Major: 1, Enums: map[string][]string{"Verdict.Status": statuses}})
}

// The published schema is that of the structs.
func TestSchemaIsUpToDate(t *testing.T) {
	want := must(makeSchema())
	path := filepath.Join("schema", "result.schema.json")
	if *update {
		if err := os.WriteFile(path, want, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := string(must(os.ReadFile(path))); got != string(want) {
		t.Errorf("%s is not that of the structs: go test ./results -run Schema -update writes it anew", path)
	}
	if string(JSONSchema()) != string(want) {
		t.Error("JSONSchema gives something else")
	}
}
