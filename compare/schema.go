package compare

import (
	_ "embed"
	"slices"
)

//go:embed schema/comparison.schema.json
var schemaFile []byte

// JSONSchema is the published JSON Schema (draft 2020-12) of a Comparison. It is made from the structs of this package by
// `go test ./compare -run Schema -update`.
func JSONSchema() []byte { return slices.Clone(schemaFile) }
