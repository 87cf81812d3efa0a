package flags

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/anykind/anykind/internal/object/codec"
)

// gates are the feature gates of Kubernetes that can be turned on or off here. What
// v1.37 has on without asking is on.
type gates struct{ offer codec.Offer }

const cborGate = "CBORServingAndStorage"

func (g *gates) String() string {
	return fmt.Sprintf("%s=%t", cborGate, g.offer.CBOR)
}

// Type is what help calls a value.
func (g *gates) Type() string { return "mapStringBool" }

// Set takes NAME=BOOL, or several of them with commas between.
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
