package results

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ErrNotResult is in every error of Read and Decode that says: this file is not a record that this build can read (as
// opposed to: it could not be opened). Such an error is a usage error, exit code 2.
var ErrNotResult = errors.New("not a readable joinbench result")

// NewRunID makes a random id of 8 hexadecimal digits.
func NewRunID() string {
	var b [4]byte
	rand.Read(b[:]) // never fails; the program ends if the system has no randomness
	return hex.EncodeToString(b[:])
}

// DefaultPath is where a run is saved unless told otherwise: results/<profile>-<UTC>-<id>.json. Characters of the profile
// that do not belong in a file name become '-'.
func DefaultPath(profile string, started time.Time, id string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '-':
			return r
		}
		return '-'
	}, profile)
	if clean = strings.Trim(clean, "-."); clean == "" {
		clean = "run"
	}
	return filepath.Join("results", fmt.Sprintf("%s-%s-%s.json", clean, started.UTC().Format("20060102T150405Z"), id))
}

// Marshal gives rec as indented JSON that ends in a line feed. It first makes rec fit for JSON, in place: schema and version
// are set, NaN and infinity become null, nil lists empty ones.
func Marshal(rec *Record) ([]byte, error) {
	rec.Schema, rec.SchemaVersion = Schema, SchemaVersion
	normalize(rec)
	out, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return append(out, '\n'), nil
}

// Write saves rec at path, whole or not at all: a temporary file in the same folder, synced, then renamed. The folder is made
// if it is missing. A file that was there is replaced. rec is changed as by Marshal.
func Write(path string, rec *Record) (err error) {
	data, err := Marshal(rec)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("save result: %w", err)
	}
	temp := filepath.Join(dir, "."+filepath.Base(path)+"."+NewRunID()+".tmp")
	defer func() {
		if err != nil {
			os.Remove(temp)
			err = fmt.Errorf("save result %s: %w", path, err)
		}
	}()
	if err := writeSynced(temp, data); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(dir)
}

// writeSynced makes a new file with the user's own permissions (os.CreateTemp would make it private).
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes the rename last. Some file systems refuse to sync a folder; the file itself is safe then all the same.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}

// Read loads a record. An error wraps ErrNotResult when the file is there but is not a record of ours.
func Read(path string) (*Record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	return Decode(data, path)
}

// Decode is Read from memory; name stands for the path in errors. Unknown fields are let through: a newer minor version may
// have more of them.
func Decode(data []byte, name string) (*Record, error) {
	no := func(format string, args ...any) (*Record, error) {
		return nil, fmt.Errorf("%s: %w: %s", name, ErrNotResult, fmt.Sprintf(format, args...))
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return no("the file is empty")
	}
	var head struct {
		Schema        *string `json:"schema"`
		SchemaVersion string  `json:"schema_version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return no("%s", jsonPlace(data, err))
	}
	switch {
	case head.Schema == nil:
		return no("it has no \"schema\" (expected %q)", Schema)
	case *head.Schema != Schema:
		return no("its schema is %q (expected %q)", *head.Schema, Schema)
	}
	if theirs, ok := major(head.SchemaVersion); !ok {
		return no("its schema_version %q is not a version (this build reads %s)", head.SchemaVersion, SchemaVersion)
	} else if ours, _ := major(SchemaVersion); theirs != ours {
		return no("its schema_version is %s and this build reads %d.x; use a joinbench of that version", head.SchemaVersion, ours)
	}
	rec := new(Record)
	if err := json.Unmarshal(data, rec); err != nil {
		return no("%s", jsonPlace(data, err))
	}
	var config bytes.Buffer // as it was before the file was indented
	if rec.Run.Config != nil && json.Compact(&config, rec.Run.Config) == nil {
		rec.Run.Config = config.Bytes()
	}
	return rec, nil
}

// major is the first number of a version of three.
func major(version string) (int, bool) {
	parts := strings.Split(version, ".")
	if len(parts) != 3 {
		return 0, false
	}
	n, err := strconv.Atoi(parts[0])
	return n, err == nil
}

// jsonPlace adds the line to an error of encoding/json.
func jsonPlace(data []byte, err error) string {
	offset := int64(-1)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	if offset < 0 || offset > int64(len(data)) {
		return err.Error()
	}
	return fmt.Sprintf("line %d: %v", 1+bytes.Count(data[:offset], []byte{'\n'}), err)
}
