package near

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "axc", 1},
		{"kitten", "sitting", 3}, {"fliter", "filter", 1}, {"ca", "abc", 3}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestWord(t *testing.T) {
	names := []string{"filter", "kafka_topic", "filler"}
	for _, c := range []struct {
		word  string
		taken map[string]bool
		want  string
	}{{"fliter", nil, "filter"}, {"Kafka-Topik", nil, "kafka_topic"}, {"fiter", map[string]bool{"filter": true}, "filter"},
		{"filber", map[string]bool{"filter": true}, "filler"}, {"window", nil, ""}, {"", nil, ""}} {
		if got := Word(c.word, names, c.taken); got != c.want {
			t.Errorf("%q: %q, want %q", c.word, got, c.want)
		}
	}
}
