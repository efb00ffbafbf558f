package config

import "testing"

func TestBrief(t *testing.T) {
	for text, want := range map[string]string{
		"": "type: inner, cardinality: one-to-one, probe: aligned, window.before: 0s, window.after: 4h, grace: 10s",
		"type: left\ncardinality: one-to-many\nearly: 300s\nretract: true\ngrace: 0s\noutput: {key: order_id}\n": "type: left, cardinality: one-to-many, probe: aligned, " +
			"window.before: 0s, window.after: 4h, grace: 0s, early: 5m, retract: true, output.key: order_id",
		"cardinality: one-to-many\ncollect: {count: $.n}\ncomplete_on: {field: $.s, equals: x, emit: pair}\nmax_pending: 5M\nunmatched: topic\n": "type: inner, cardinality: one-to-many, " +
			"probe: aligned, window.before: 0s, window.after: 4h, grace: 10s, complete_on: {field: $.s, equals: x, emit: pair}, collect: {count: $.n}, max_pending: 5M, unmatched: topic",
	} {
		if got := mustValidate(t, small+text).Brief(); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
	j := Default()
	for i, key := range briefKeys {
		if j.binder("").find(key) == nil {
			t.Errorf("key %d, %s, is no key", i, key)
		}
	}
}
