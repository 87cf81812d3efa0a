package flags

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// gateNames are the feature gates of kube-apiserver v1.37, one per line: + marks gates that are on
// by default, - the others, and ! locked gates.
//
//go:embed gates.txt
var gateNames string

// kubernetesGates are the feature gates of kube-apiserver.
type kubernetesGates struct {
	gates
	unchanged []string // gates with a value that anykind cannot set
	asked     map[string]bool
}

// awaited are beta gates with which programs of Kubernetes wait for an API that anykind does not
// have.
var awaited = []struct{ gate, why string }{
	{"CoordinatedLeaderElection", "kube-controller-manager and kube-scheduler with this gate wait without end for a Lease that no controller here assigns to them"},
	{"GenericWorkload", "kube-scheduler with this gate waits without end for the kind PodGroup of scheduling.k8s.io/v1beta1, which is not here"},
}

// allBeta is the gate that enables all beta gates.
const allBeta = "AllBeta"

// inVain calls tell for each enabled gate with which other programs wait without end.
func (g *kubernetesGates) inVain(tell func(gate, why string)) {
	for _, a := range awaited {
		on, said := g.asked[a.gate]
		if !said {
			on = g.asked[allBeta]
		}
		if on {
			tell(a.gate, a.why)
		}
	}
}

// Set parses NAME=BOOL pairs, separated by commas. The name of the component can precede a name.
func (g *kubernetesGates) Set(value string) error {
	for pair := range strings.SplitSeq(value, ",") {
		name, said, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(pair), "kube:"), "=")
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if g.of(name) != nil {
			if err := g.gates.Set(name + "=" + said); err != nil {
				return err
			}
			continue
		}
		on, locked, known := defaultOf(name)
		if !known {
			return fmt.Errorf("unrecognized feature gate: %s", name)
		}
		wanted, err := strconv.ParseBool(strings.TrimSpace(said))
		if g.asked == nil {
			g.asked = map[string]bool{}
		}
		g.asked[name] = wanted
		switch {
		case !ok:
			return fmt.Errorf("missing bool value for %s", name)
		case err != nil:
			return fmt.Errorf("invalid value of %s=%s, err: %w", name, said, err)
		case wanted != on && locked:
			return fmt.Errorf("cannot set feature gate %s to %t, feature is locked to %t", name, wanted, on)
		case wanted != on:
			g.unchanged = append(g.unchanged, name)
		}
	}
	return nil
}

// defaultOf returns the default of a gate, and whether it is locked.
func defaultOf(name string) (on, locked, known bool) {
	for line := range strings.Lines(gateNames) {
		gate, locked := strings.CutSuffix(strings.TrimSpace(line), "!")
		if gate[1:] == name {
			return gate[0] == '+', locked, true
		}
	}
	return false, false, false
}
