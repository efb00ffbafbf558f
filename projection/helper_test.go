package projection

import (
	"fmt"
	"testing"
)

// mustCompile compiles a spec that the test knows to be right.
func mustCompile(t testing.TB, side SideSpec) *Spec {
	t.Helper()
	s, err := Compile(side)
	if err != nil {
		t.Fatalf("Compile(%+v): %v", side, err)
	}
	return s
}

// keep makes keep fields of paths.
func keep(paths ...string) (fields []KeepField) {
	for _, p := range paths {
		fields = append(fields, KeepField{Path: p})
	}
	return fields
}

// decodeOne decodes one record and tells the row as text: fate, and where the fate has them time, key, body.
func decodeOne(s *Spec, rec Record) string {
	var rows Rows
	s.NewDecoder().Append(&rows, &rec)
	return rowText(&rows, 0)
}

func rowText(rows *Rows, i int) string {
	if n := len(rows.Flags); n != 0 && n != rows.Len() {
		return fmt.Sprintf("%d flags of %d rows", n, rows.Len())
	}
	if n := len(rows.Wanted); n != 0 && n != rows.Len() {
		return fmt.Sprintf("%d counts of %d rows", n, rows.Len())
	}
	watched := ""
	if rows.Flags != nil && rows.Flags[i] != 0 {
		watched += fmt.Sprintf(" flags %b", rows.Flags[i])
	}
	if rows.Wanted != nil && rows.Wanted[i] != 0 {
		watched += fmt.Sprintf(" wants %d", rows.Wanted[i])
	}
	switch rows.Fate[i] {
	case Accepted:
		return fmt.Sprintf("accepted %d %s %s%s", rows.Time[i], rows.Key(i), rows.BodyOf(i), watched)
	case NullKey:
		return fmt.Sprintf("null_key %d %s%s%s", rows.Time[i], rows.Key(i), rows.BodyOf(i), watched)
	}
	return rows.Fate[i].String() + string(rows.Key(i)) + string(rows.BodyOf(i)) + watched
}
