package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// node is a YAML value cut down to what a configuration uses. Scalars stay text: what the text means is the
// key's business, so "off" is never a boolean by accident and 010 never a number of another base.
type node struct {
	kind      nodeKind
	text      string // of a scalar
	items     []node // of a list
	fields    []field
	line, col int // from 1; 0 if the value is from no file
}

type field struct {
	name      string
	value     node
	line, col int
}

type nodeKind uint8

const (
	nullNode nodeKind = iota
	scalarNode
	listNode
	mapNode
)

func (n node) String() string {
	switch n.kind {
	case scalarNode:
		return quote(n.text)
	case listNode:
		parts := make([]string, len(n.items))
		for i, it := range n.items {
			parts[i] = it.String()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case mapNode:
		parts := make([]string, len(n.fields))
		for i, f := range n.fields {
			parts[i] = quote(f.name) + ": " + f.value.String()
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "null"
}

// brief is String for messages: what is long is cut.
func (n node) brief() string {
	const most = 60
	r := []rune(n.String())
	if len(r) > most {
		return string(r[:most]) + "…"
	}
	return string(r)
}

// placed is an error that knows its position in the file.
type placed struct {
	error
	line, col int
}

func (n node) errorf(format string, args ...any) error {
	return placed{fmt.Errorf(format, args...), n.line, n.col}
}

const (
	maxText  = 64 << 10 // bytes of a file; real ones have a few KiB, and the parser is quadratic in places
	maxDepth = 32       // of nesting; a join has four levels
	// maxParts bounds line breaks and commas. The parser looks at all that it has of a block scalar or a flow mapping
	// again for each of them: 16 Ki empty lines after a | took it 4 s, 64 Ki of them minutes.
	maxParts = 4000
)

// readYAML parses one document with goccy/go-yaml. What it returns is a mapping, or null if the text is empty.
func readYAML(text string) (root node, err error) {
	if err := readable(text); err != nil {
		return node{}, err
	}
	defer func() { // the parser is not ours; whatever the text does to it is a fault of the text
		if p := recover(); p != nil {
			root, err = node{}, placed{fmt.Errorf("not readable as YAML: %v", p), 1, 1}
		}
	}()
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		return node{}, syntaxError(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if body != nil {
			return node{}, at(doc.Body, "a second document: a configuration is one document")
		}
		body = doc.Body
	}
	if body == nil {
		return node{}, nil
	}
	return convert(body)
}

// readable refuses text that no configuration can be, before the parser spends time on it.
func readable(text string) error {
	if len(text) > maxText {
		return placed{fmt.Errorf("%d bytes are too long for a configuration (at most %d)", len(text), maxText), 1, 1}
	}
	line, depth, parts := 1, 0, 0
	for i, r := range text {
		if r == '\n' || r == '\r' || r == ',' {
			if parts++; parts > maxParts {
				return placed{fmt.Errorf("more than %d lines and list items are too many for a configuration", maxParts), line, 1}
			}
		}
		switch r {
		case '\n':
			line++
		case '-', '?':
			if strings.HasPrefix(text[i:], strings.Repeat(string(r)+" ", maxDepth)) { // a list in a list in a list ...
				return placed{errors.New("nested too deeply"), line, 1}
			}
		case '[', '{':
			if depth++; depth > 1000 {
				return placed{errors.New("nested too deeply"), line, 1}
			}
		case ']', '}':
			depth--
		case utf8.RuneError:
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return placed{errors.New("invalid UTF-8"), line, 1}
			}
		}
	}
	return nil
}

// syntaxError takes message and place out of the parser's error and adds the cause that is usual here.
func syntaxError(err error) error {
	var ye yaml.Error
	if !errors.As(err, &ye) {
		return placed{fmt.Errorf("not readable as YAML: %w", err), 1, 1}
	}
	msg := ye.GetMessage()
	switch {
	case strings.Contains(msg, "'@' is a reserved"):
		msg += ` (quote it: "@key")`
	case strings.Contains(msg, "',' or ']'"), strings.Contains(msg, "',' or '}'"):
		msg += ` (a path with [ ] inside a list or mapping needs quotes: ["$.x[0]"])`
	case strings.Contains(msg, "cannot start any token") && strings.Contains(msg, "\t"):
		msg = "a tab cannot indent YAML, use blanks"
	}
	line, col := position(ye.GetToken())
	return placed{errors.New(msg), line, col}
}

func position(t *token.Token) (line, col int) {
	if t == nil || t.Position == nil {
		return 1, 1
	}
	return t.Position.Line, t.Position.Column
}

func at(n ast.Node, format string, args ...any) error {
	line, col := position(n.GetToken())
	return placed{fmt.Errorf(format, args...), line, col}
}

func convert(n ast.Node) (node, error) { return convertDepth(n, 0) }

func convertDepth(n ast.Node, depth int) (node, error) {
	if depth > maxDepth {
		return node{}, at(n, "nested too deeply")
	}
	line, col := position(n.GetToken())
	out := node{line: line, col: col}
	switch n := n.(type) {
	case *ast.NullNode:
		return out, nil
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.kind, out.text = scalarNode, n.GetToken().Value
		return out, nil
	case *ast.LiteralNode:
		out.kind, out.text = scalarNode, n.Value.Value
		return out, nil
	case *ast.SequenceNode:
		out.kind = listNode
		for _, v := range n.Values {
			item, err := convertDepth(v, depth+1)
			if err != nil {
				return node{}, err
			}
			out.items = append(out.items, rejoined(v, item))
		}
		return out, nil
	case *ast.MappingNode:
		return convertMap(out, n.Values, depth)
	case *ast.MappingValueNode:
		return convertMap(out, []*ast.MappingValueNode{n}, depth)
	case *ast.AnchorNode, *ast.AliasNode:
		return node{}, at(n, "anchors (&) and aliases (*) are not supported: write the value out, or quote it")
	case *ast.TagNode:
		return node{}, at(n, "tags (!) are not supported: leave the tag out, or quote the value")
	}
	return node{}, at(n, "%s is not supported in a configuration", n.Type())
}

// rejoined makes one scalar again of an item like localhost:9092. YAML wants a blank after the colon of a
// pair, but inside {} the parser takes the colon alone for one, so "brokers: [localhost:9092]" came as a mapping.
func rejoined(n ast.Node, item node) node {
	m, ok := n.(*ast.MappingNode)
	if !ok || m.IsFlowStyle || len(m.Values) != 1 {
		return item
	}
	key, value := m.Values[0].Key.GetToken(), item.fields[0].value
	line, colon := position(m.Values[0].Start)
	if key.Type != token.StringType || value.kind != scalarNode || value.line != line || value.col != colon+1 {
		return item
	}
	return node{kind: scalarNode, text: key.Value + ":" + value.text, line: item.line, col: item.col}
}

func convertMap(out node, pairs []*ast.MappingValueNode, depth int) (node, error) {
	out.kind = mapNode
	seen := map[string]int{}
	for _, p := range pairs {
		switch p.Key.(type) {
		case *ast.MergeKeyNode:
			return node{}, at(p.Key, "merge keys (<<) are not supported: write the keys out")
		case *ast.MappingKeyNode:
			return node{}, at(p.Key, "a key that begins with ? is not supported: write key: value")
		case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
			return node{}, at(p.Key, "anchors, aliases and tags are not supported: write the key out")
		}
		f := field{name: p.Key.GetToken().Value}
		f.line, f.col = position(p.Key.GetToken())
		if first, twice := seen[f.name]; twice {
			return node{}, at(p.Key, "key %q is already in line %d", f.name, first)
		}
		seen[f.name] = f.line
		v, err := convertDepth(p.Value, depth+1)
		if err != nil {
			return node{}, err
		}
		f.value = v
		out.fields = append(out.fields, f)
	}
	if len(pairs) > 0 { // a block mapping has no start of its own: take that of its first key
		out.line, out.col = out.fields[0].line, out.fields[0].col
	}
	return out, nil
}
