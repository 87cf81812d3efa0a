package gate

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
)

// The lines of table are gates: the name, the specifications of versions separated by commas, and after
// the word needs the gates that must be on, too. A specification is a version, a stage, the default, and
// the word locked for one that cannot be changed.
//
//go:embed gates.txt
var table string

// parse returns the gates of a table, with their defaults in its newest version.
func parse(text string) (featuregate.MutableVersionedFeatureGate, error) {
	newest := version.MajorMinor(0, 0)
	specs := map[featuregate.Feature]featuregate.VersionedSpecs{}
	needs := map[featuregate.Feature][]featuregate.Feature{}
	for line := range strings.Lines(text) {
		line, deps, _ := strings.Cut(strings.TrimSpace(line), " needs ")
		text, of, _ := strings.Cut(line, " ")
		name := featuregate.Feature(text)
		for one := range strings.SplitSeq(of, ",") {
			spec, err := specOf(strings.Fields(one))
			if err != nil {
				return nil, fmt.Errorf("gate %s: %q: %w", name, one, err)
			}
			specs[name] = append(specs[name], spec)
			if newest.LessThan(spec.Version) {
				newest = spec.Version
			}
		}
		for dep := range strings.FieldsSeq(deps) {
			needs[name] = append(needs[name], featuregate.Feature(dep))
		}
	}
	gates := featuregate.NewVersionedFeatureGate(newest)
	if err := gates.AddVersioned(specs); err != nil {
		return nil, err
	}
	return gates, gates.AddDependencies(needs)
}

func specOf(words []string) (spec featuregate.FeatureSpec, err error) {
	for i, word := range words {
		switch {
		case i == 0:
			spec.Version, err = version.ParseMajorMinor(word)
		case word == "alpha":
			spec.PreRelease = featuregate.Alpha
		case word == "beta":
			spec.PreRelease = featuregate.Beta
		case word == "deprecated":
			spec.PreRelease = featuregate.Deprecated
		case word == "stable":
			spec.PreRelease = featuregate.GA
		case word == "prealpha":
			spec.PreRelease = featuregate.PreAlpha
		case word == "on":
			spec.Default = true
		case word == "off":
		case word == "locked":
			spec.LockToDefault = true
		case strings.HasPrefix(word, "compatible="):
			spec.MinCompatibilityVersion, err = version.ParseMajorMinor(strings.TrimPrefix(word, "compatible="))
		default:
			err = fmt.Errorf("unknown word %q", word)
		}
		if err != nil {
			return spec, err
		}
	}
	return spec, nil
}

// A Flag is the value of a flag such as --feature-gates: NAME=BOOL pairs, separated by commas. The name of
// the component can precede a name. Several flags add up.
type Flag struct{ given map[string]bool }

// Set parses a text. The errors are those of Kubernetes.
func (f *Flag) Set(text string) error {
	if f.given == nil {
		f.given = map[string]bool{}
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(pair), "kube:"), "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if name == "" {
			continue
		}
		if _, known := defaults()[Name(name)]; !known {
			return fmt.Errorf("unrecognized feature gate: %s", name)
		}
		on, err := strconv.ParseBool(value)
		switch {
		case !ok:
			return fmt.Errorf("missing bool value for %s", name)
		case err != nil:
			return fmt.Errorf("invalid value of %s=%s, err: %w", name, value, err)
		}
		f.given[name] = on
	}
	return nil
}

func (f *Flag) String() string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(f.given)) {
		pairs = append(pairs, fmt.Sprintf("%s=%t", name, f.given[name]))
	}
	return strings.Join(pairs, ",")
}

// Type is the name of the value in help.
func (*Flag) Type() string { return "mapStringBool" }

// Gates returns the values of all gates. It fails for values that Kubernetes does not accept together.
func (f *Flag) Gates() (*Set, error) {
	if len(f.given) == 0 {
		return nil, nil
	}
	gates, err := parse(table)
	if err != nil {
		return nil, err
	}
	if err := gates.SetFromMap(f.given); err != nil {
		return nil, err
	}
	s := &Set{changed: map[Name]bool{}}
	for name, usual := range defaults() {
		switch on := gates.Enabled(featuregate.Feature(name)); {
		case on == usual:
		case IdleReason(name) != "":
			s.idle = append(s.idle, name)
		default:
			s.changed[name] = on
		}
	}
	return s, nil
}
