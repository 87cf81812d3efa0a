package flags

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/anykind/anykind/internal/object/codec"
)

// gates are the feature gates of Kubernetes with an effect here. Their defaults are those of v1.37.
type gates struct{ offer codec.Offer }

const cborGate = "CBORServingAndStorage"

func (g *gates) String() string {
	return fmt.Sprintf("%s=%t", cborGate, g.offer.CBOR)
}

// Type returns the type for help.
func (g *gates) Type() string { return "mapStringBool" }

// Set accepts NAME=BOOL, or several of them separated by commas.
func (g *gates) Set(value string) error {
	for pair := range strings.SplitSeq(value, ",") {
		name, said, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			continue
		case !ok:
			return fmt.Errorf("missing bool value for %s", name)
		case name != cborGate:
			return fmt.Errorf("unrecognized feature gate: %s; there is only %s", name, cborGate)
		}
		on, err := strconv.ParseBool(strings.TrimSpace(said))
		if err != nil {
			return fmt.Errorf("invalid value of %s=%s: want true or false", name, said)
		}
		g.offer.CBOR = on
	}
	return nil
}
