// Package schemagen makes the JSON Schemas (draft 2020-12) that are published beside results and comparisons out of their Go types and
// the comments on these, and holds documents against them. It is for tests alone.
package schemagen

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// object is one JSON object of the schema.
type object = map[string]any

// maker turns structs into definitions.
type maker struct {
	docs  map[string]string // of types ("Cost") and fields ("Cost.NsPerB")
	enums map[string][]string
	defs  object
}

// Spec is the document that a schema describes.
type Spec struct {
	ID, Title string
	Root      reflect.Type
	Dir       string              // of the package of the types, whose comments become descriptions
	Schema    string              // what the document's field schema says
	Major     int                 // of its schema_version
	Enums     map[string][]string // fields ("Verdict.Status") that hold one of a few words
}

// Make describes the document as encoding/json writes it: every field is there, what is not known is null. More fields than
// these are allowed, for a later minor version has them.
func Make(s Spec) ([]byte, error) {
	docs, err := commentsOf(s.Dir)
	if err != nil {
		return nil, err
	}
	m := maker{docs: docs, enums: s.Enums, defs: object{}}
	root := m.structure(s.Root)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = s.ID
	root["title"] = s.Title
	root["$defs"] = m.defs
	props := root["properties"].(object)
	props["schema"] = object{"const": s.Schema}
	props["schema_version"] = object{"type": "string", "pattern": fmt.Sprintf(`^%d\.(0|[1-9]\d*)\.(0|[1-9]\d*)$`, s.Major)}
	out, err := json.MarshalIndent(root, "", "  ")
	return append(out, '\n'), err
}

func (m *maker) structure(t reflect.Type) object {
	props, required, together := object{}, []string{}, object{}
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case !f.IsExported():
		case f.Anonymous:
			of := f.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			part := m.structure(of)
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
			props[nameOf(f)] = m.field(t.Name()+"."+f.Name, f.Type)
			if !strings.Contains(f.Tag.Get("json"), ",omit") {
				required = append(required, nameOf(f))
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

func (m *maker) field(name string, t reflect.Type) object {
	p := m.value(t)
	if doc := m.docs[name]; doc != "" {
		p["description"] = doc
	}
	if e := m.enums[name]; e != nil {
		p["enum"] = e
	}
	return p
}

// value describes a type; a pointer may be null.
func (m *maker) value(t reflect.Type) object {
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

// commentsOf reads the comments of a package's types and their fields.
func commentsOf(dir string) (map[string]string, error) {
	docs := map[string]string{}
	note := func(name string, groups ...*ast.CommentGroup) {
		for _, g := range groups {
			if text := strings.Join(strings.Fields(g.Text()), " "); text != "" && docs[name] == "" {
				docs[name] = text
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
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
	return docs, nil
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return cmp.Or(name, f.Name)
}

// Validator holds documents against a schema; the schema itself is held against the metaschema of its draft.
func Validator(schema []byte) (func(document []byte) error, error) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	const name = "urn:schema"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, parsed); err != nil {
		return nil, err
	}
	s, err := c.Compile(name)
	if err != nil {
		return nil, err
	}
	return func(document []byte) error {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
		if err != nil {
			return err
		}
		return s.Validate(doc)
	}, nil
}
