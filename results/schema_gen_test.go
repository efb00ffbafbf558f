package results

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// schemaID names the schema of major version 1 of the record, whatever its minor version.
const schemaID = "urn:joinbench:schema:result:1"

// object is one JSON object of the schema.
type object = map[string]any

// schemaMaker turns the structs of a record into definitions.
type schemaMaker struct {
	docs map[string]string // of types ("Cost") and fields ("Cost.NsPerB")
	defs object
}

// makeSchema describes the record as Marshal writes it: every field is there, what is not known is null. More fields than
// these are allowed, for a later minor version has them.
func makeSchema(t *testing.T) []byte {
	t.Helper()
	m := schemaMaker{docs: commentsOf(t), defs: object{}}
	root := m.structure(reflect.TypeFor[Record]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = schemaID
	root["title"] = "joinbench result " + SchemaVersion
	root["$defs"] = m.defs
	props := root["properties"].(object)
	props["schema"] = object{"const": Schema}
	props["schema_version"] = object{"type": "string", "pattern": `^1\.(0|[1-9]\d*)\.(0|[1-9]\d*)$`}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

func (m *schemaMaker) structure(t reflect.Type) object {
	props, required, together := object{}, []string{}, object{}
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case !f.IsExported():
		case f.Anonymous:
			part := m.structure(pointee(f.Type))
			maps.Copy(props, part["properties"].(object))
			names := part["required"].([]string)
			if f.Type.Kind() == reflect.Struct {
				required = append(required, names...)
				continue
			}
			for _, name := range names { // by pointer: there as a whole or not at all
				together[name] = names
			}
		default:
			props[jsonName(f)] = m.field(t.Name()+"."+f.Name, f.Type)
			if !strings.Contains(f.Tag.Get("json"), ",omit") {
				required = append(required, jsonName(f))
			}
		}
	}
	o := object{"type": "object", "properties": props, "required": required}
	if len(together) > 0 {
		o["dependentRequired"] = together
	}
	if doc := m.docs[t.Name()]; doc != "" {
		o["description"] = doc
	}
	return o
}

// enums are the fields that hold one of a few words; "" is what a record has that never got that far.
var enums = map[string][]string{"Verdict.Status": append([]string{"", StatusOK}, statuses()...)}

func statuses() (names []string) {
	for _, r := range ranked {
		names = append(names, r.status)
	}
	return names
}

func (m *schemaMaker) field(name string, t reflect.Type) object {
	p := m.value(t)
	if doc := m.docs[name]; doc != "" {
		p["description"] = doc
	}
	if e := enums[name]; e != nil {
		p["enum"] = e
	}
	return p
}

// value describes a type; a pointer may be null.
func (m *schemaMaker) value(t reflect.Type) object {
	if t == reflect.TypeFor[json.RawMessage]() {
		return object{} // any JSON
	}
	switch t.Kind() {
	case reflect.Pointer:
		p := m.value(t.Elem())
		if kind, ok := p["type"].(string); ok {
			p["type"] = []string{kind, "null"}
			return p
		}
		return object{"anyOf": []object{p, {"type": "null"}}}
	case reflect.Struct:
		if m.defs[t.Name()] == nil {
			m.defs[t.Name()] = object{} // a circle would end here
			m.defs[t.Name()] = m.structure(t)
		}
		return object{"$ref": "#/$defs/" + t.Name()}
	case reflect.Slice:
		return object{"type": "array", "items": m.value(t.Elem())}
	case reflect.Array:
		return object{"type": "array", "items": m.value(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": m.value(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	}
	panic("the schema has no form for " + t.String())
}

// commentsOf reads the comments of this package's types and their fields.
func commentsOf(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	note := func(name string, groups ...*ast.CommentGroup) {
		for _, g := range groups {
			if text := strings.Join(strings.Fields(g.Text()), " "); text != "" && docs[name] == "" {
				docs[name] = text
			}
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				continue
			}
			for _, s := range decl.Specs {
				spec := s.(*ast.TypeSpec)
				note(spec.Name.Name, spec.Doc, decl.Doc)
				if body, ok := spec.Type.(*ast.StructType); ok {
					for _, f := range body.Fields.List {
						for _, n := range f.Names {
							note(spec.Name.Name+"."+n.Name, f.Comment, f.Doc)
						}
					}
				}
			}
		}
	}
	return docs
}

// The published schema is that of the structs.
func TestSchemaIsUpToDate(t *testing.T) {
	want := makeSchema(t)
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
