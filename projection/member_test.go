package projection

import (
	"slices"
	"testing"
)

func TestMember(t *testing.T) {
	m := NewMember("x.y")
	for object, want := range map[string]string{
		`{"a":{"x.y":1},"x.y":"v","x.y":2}`: `"v"`,
		`{"x.y":-1.50}`:                     `-1.50`,
		`{"x.y":{"z":[1]}}`:                 `{"z":[1]}`,
		`{"x.\u0079":true}`:                 `true`,
		`{"x.y":null}`:                      ``,
		`{"x":{"y":1}}`:                     ``,
		`{}`:                                ``,
		`[1]`:                               ``,
		`"x.y"`:                             ``,
		`null`:                              ``,
		``:                                  ``,
		`{"x.y":1`:                          ``,
	} {
		if got := m.Find([]byte(object)); string(got) != want || (got == nil) != (want == "") {
			t.Errorf("%s: %q, want %q", object, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, store := range []string{"projection", "full"} {
		s := mustCompile(t, SideSpec{Key: []string{"@key"}, Store: store, Keep: append(keep("$.a.id", `$["x.y"]`, "$.l[2]"), KeepField{"n", "$.m"})})
		if got := s.Names(); !slices.Equal(got, []string{"id", "x.y", "2", "n"}) {
			t.Errorf("store %s: %q", store, got)
		}
	}
	if got := mustCompile(t, SideSpec{Key: []string{"@key"}}).Names(); len(got) != 0 {
		t.Errorf("whole values have the names %q", got)
	}
}
