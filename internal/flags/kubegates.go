package flags

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// gateNames are the feature gates of kube-apiserver v1.37, a line each: + before those that are on
// by default, - before the others, and ! after those that nobody can change.
//
//go:embed gates.txt
var gateNames string

// kubernetesGates are the feature gates of kube-apiserver.
type kubernetesGates struct {
	gates
	unchanged []string // that were asked to be what they are not
}

// Set takes NAME=BOOL, or several of them with commas between. The name of the component may come
// before a name.
func (g *kubernetesGates) Set(value string) error {
	for pair := range strings.SplitSeq(value, ",") {
		name, said, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(pair), "kube:"), "=")
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if name == cborGate {
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

// defaultOf returns whether a gate is on unless somebody says otherwise, and whether nobody can.
func defaultOf(name string) (on, locked, known bool) {
	for line := range strings.Lines(gateNames) {
		gate, locked := strings.CutSuffix(strings.TrimSpace(line), "!")
		if gate[1:] == name {
			return gate[0] == '+', locked, true
		}
	}
	return false, false, false
}
