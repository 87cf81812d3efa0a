package registry

import (
	"encoding/json"
	"testing"
)

// Additions of admission also reach the object as decoded, which keeps its empty values.
func TestGraft(t *testing.T) {
	for _, test := range []struct{ name, read, stored, want string }{
		{"a field", `{"a":{"empty":[]}}`, `{"a":{"b":1}}`, `{"a":{"b":1,"empty":[]}}`},
		{"in the place of an empty one", `{"a":""}`, `{"a":"b"}`, `{"a":"b"}`},
		{"a list", `{"empty":{}}`, `{"list":[{"a":1}]}`, `{"empty":{},"list":[{"a":1}]}`},
		{"in the place of an empty list", `{"list":[]}`, `{"list":[1]}`, `{"list":[1]}`},
		{"at the end of a list", `{"list":[{"a":1,"empty":[]}]}`, `{"list":[{"a":1,"c":3},{"b":2}]}`, `{"list":[{"a":1,"c":3,"empty":[]},{"b":2}]}`},
	} {
		var read, stored any
		for text, to := range map[string]*any{test.read: &read, test.stored: &stored} {
			if err := json.Unmarshal([]byte(text), to); err != nil {
				t.Fatal(err)
			}
		}
		got, err := json.Marshal(graft(read, stored))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s, want %s (%v)", test.name, got, test.want, err)
		}
	}
}
