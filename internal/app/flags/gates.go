package flags

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/anykind/anykind/internal/object/codec"
)

// gates are the feature gates of Kubernetes that anykind supports. Gates that are on by default in
// v1.37 are on.
type gates struct {
	offer        codec.Offer
	shardedLists bool
}

const (
	cborGate  = "CBORServingAndStorage"
	shardGate = "ShardedListAndWatch"
)

// of returns the value of a gate, or nil.
func (g *gates) of(name string) *bool {
	switch name {
	case cborGate:
		return &g.offer.CBOR
	case shardGate:
		return &g.shardedLists
	default:
		return nil
	}
}

func (g *gates) String() string {
	return fmt.Sprintf("%s=%t,%s=%t", cborGate, g.offer.CBOR, shardGate, g.shardedLists)
}

// Type is the name of the value in help.
func (g *gates) Type() string { return "mapStringBool" }

// Set parses NAME=BOOL pairs, separated by commas.
func (g *gates) Set(value string) error {
	for pair := range strings.SplitSeq(value, ",") {
		name, said, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		gate := g.of(name)
		switch {
		case name == "":
			continue
		case !ok:
			return fmt.Errorf("missing bool value for %s", name)
		case gate == nil:
			return fmt.Errorf("unrecognized feature gate: %s; there are only %s and %s", name, cborGate, shardGate)
		}
		on, err := strconv.ParseBool(strings.TrimSpace(said))
		if err != nil {
			return fmt.Errorf("invalid value of %s=%s: want true or false", name, said)
		}
		*gate = on
	}
	return nil
}
