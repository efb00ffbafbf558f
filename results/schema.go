package results

import (
	_ "embed"
	"slices"
)

//go:embed schema/result.schema.json
var schemaFile []byte

// JSONSchema is the published JSON Schema (draft 2020-12) of a whole record. It is made from the structs of this package by
// `go test ./results -run Schema -update`.
func JSONSchema() []byte { return slices.Clone(schemaFile) }
