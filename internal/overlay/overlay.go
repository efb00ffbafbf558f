// Package overlay changes a file for the compiler alone (the flag -overlay of the go command), so that builds which are wrong or slow on
// purpose leave the tree as it is. It is for the programs that make such builds.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Plant is the file with one text in place of another. That the other is not there, or more than once, is an error: who plants must
// follow the code.
func Plant(file, old, text string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(data), old); n != 1 {
		return "", fmt.Errorf("the text to replace is %d times in %s, want once: %q", n, file, old)
	}
	return strings.Replace(string(data), old, text, 1), nil
}

// Write puts what is to stand for a file into a directory, and gives the path that -overlay takes.
func Write(dir, file, text string) (string, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	planted, list := filepath.Join(dir, "planted.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(planted, []byte(text), 0o644); err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": {path: planted}})
	if err != nil {
		return "", err
	}
	return list, os.WriteFile(list, data, 0o644)
}
