package cluster_test

import (
	"io"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/network/cluster"
)

// endless repeats a letter.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	if e.read > 1<<30 {
		return 0, io.ErrUnexpectedEOF
	}
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// Events are limited one by one, not by the size of the watch.
func TestEventsAreBounded(t *testing.T) {
	const head, tail = `{"type":"ADDED","object":"`, `"}`
	large := head + strings.Repeat("a", 6<<20) + tail
	body := &endless{}
	events := cluster.NewEvents(io.MultiReader(strings.NewReader(strings.Repeat(large, 4)+head), body))
	for range 4 {
		e, err := events.Next()
		if err != nil || e.Type != "ADDED" || len(e.Object) < 6<<20 {
			t.Fatal(e.Type, len(e.Object), err)
		}
	}
	_, err := events.Next()
	if err == nil || !strings.Contains(err.Error(), "a watch event is larger than 16777216 bytes") {
		t.Error(err)
	}
	if body.read > 64<<20 {
		t.Errorf("%d bytes of the event were read", body.read)
	}
}
