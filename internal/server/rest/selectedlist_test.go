package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
)

// A list with a selector keeps the objects that it found.
func TestListOfSelected(t *testing.T) {
	s := newServer(t)
	for i := range 10_000 {
		value := fmt.Sprintf(`{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"labels":{"odd":"%t"},"name":"l%05d","namespace":"default","uid":"u"}}`, i%2 == 1, i)
		if _, err := s.backend.Commit(t.Context(), kv.Write{Key: fmt.Sprintf("/registry/test.example.com/leads/default/l%05d", i), Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]int{"": 10_000, "?labelSelector=odd%3Dtrue": 5000, "?limit=4097": 4097, "?labelSelector=odd%3Dtrue&limit=4500": 4500} {
		a := s.get(leads + query).is(200)
		if got := strings.Count(a.body, `"uid"`); got != want {
			t.Errorf("%s: %d objects, want %d", query, got, want)
		}
		last := want - 1
		if strings.Contains(query, "odd") {
			last = 2*want - 1
		}
		if !strings.Contains(a.body, fmt.Sprintf(`"l%05d"`, last)) || strings.Contains(a.body, fmt.Sprintf(`"l%05d"`, last+2)) {
			t.Errorf("%s: the last object is not l%05d", query, last)
		}
	}
}
