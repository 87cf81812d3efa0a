//go:build !race

// The race detector multiplies the processor time of 20,000 requests by ten. The test sends one at a time.

package app

import (
	"math/rand/v2"
	"testing"
)

// A request of any form affects only the objects that it was authorized for.
func TestTouchesWhatWasAuthorized(t *testing.T) {
	c := startTouch(t)
	r := rand.New(rand.NewPCG(18, 2))
	for range 20_000 {
		if c.random(r); t.Failed() {
			return
		}
	}
	for _, verb := range []string{"get", "list", "create", "update", "patch", "delete", "deletecollection"} {
		if c.done[verb] < 5 {
			t.Errorf("only %d objects were touched by %s: the requests are about nothing", c.done[verb], verb)
		}
	}
}
