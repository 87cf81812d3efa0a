package gate

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
)

// The lines of table are gates: the name, the specifications of versions separated by commas, and after
// the word needs the gates that must be on, too. A specification is a version, a stage, the default, and
// the word locked for one that cannot be changed.
//
//go:embed gates.txt
var table string

// parse returns the gates of a table, with their defaults in the Current release.
func parse(text string) (featuregate.MutableVersionedFeatureGate, error) {
	gates := featuregate.NewVersionedFeatureGate(version.MajorMinor(1, uint(Current)))
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
		}
		for dep := range strings.FieldsSeq(deps) {
			needs[name] = append(needs[name], featuregate.Feature(dep))
		}
	}
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
type Flag struct {
	given map[string]bool
	// Emulated and Compatible are the values of --emulated-version and --min-compatibility-version.
	Emulated, Compatible []string
	// ServesNewer and ServesNamed are the values of --emulation-forward-compatible and
	// --runtime-config-emulation-forward-compatible.
	ServesNewer, ServesNamed bool
}

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

// Of returns the values of all gates in a release, such as 1.35. Empty is Current.
func Of(release string, given map[string]bool) (*Set, error) {
	var f Flag
	if release != "" {
		f.Emulated = []string{release}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := f.Set(fmt.Sprintf("%s=%t", name, given[name])); err != nil {
			return nil, err
		}
	}
	return f.Gates()
}

// Gates returns the values of all gates. It fails for values that Kubernetes does not accept together.
func (f *Flag) Gates() (*Set, error) {
	if len(f.given)+len(f.Emulated)+len(f.Compatible) == 0 {
		return nil, f.checkNewer(Current)
	}
	gates, err := parse(table)
	if err != nil {
		return nil, err
	}
	s := &Set{changed: map[Name]bool{}, newer: f.ServesNewer, named: f.ServesNamed}
	if len(f.Emulated)+len(f.Compatible) > 0 {
		if s.emulated, s.compatible, err = f.releases(gates); err != nil {
			return nil, err
		}
	}
	if err := f.checkNewer(s.Emulated()); err != nil {
		return nil, err
	}
	if err := gates.SetFromMap(f.given); err != nil {
		return nil, err
	}
	for name, usual := range defaults() {
		switch on, why := gates.Enabled(featuregate.Feature(name)), IdleReason(name); {
		case on == usual:
		case why != "":
			if _, given := f.given[string(name)]; given || s.emulated == 0 || !strings.HasPrefix(why, ofOther) {
				s.idle = append(s.idle, name)
			}
		default:
			s.changed[name] = on
		}
	}
	return s, nil
}

// checkNewer rejects flags that have a meaning in an emulated release only.
func (f *Flag) checkNewer(emulated Release) error {
	const form = "ServerRunOptions.%s cannot be set to true if the emulation version is the same as the binary version"
	switch {
	case emulated == Current && f.ServesNewer:
		return fmt.Errorf(form, "EmulationForwardCompatible")
	case emulated == Current && f.ServesNamed:
		return fmt.Errorf(form, "RuntimeConfigEmulationForwardCompatible")
	}
	return nil
}

// releases returns the releases of the flags, and gives gates the values that they have there.
func (f *Flag) releases(gates featuregate.MutableVersionedFeatureGate) (emulated, compatible Release, err error) {
	known := compatibility.NewEffectiveVersionFromString(Current.String()+".0", Oldest.String(), Oldest.String())
	all := compatibility.NewComponentGlobalsRegistry()
	if err := all.Register(compatibility.DefaultKubeComponent, known, gates); err != nil {
		return 0, 0, err
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.AddFlags(flags)
	for name, given := range map[string][]string{"emulated-version": f.Emulated, "min-compatibility-version": f.Compatible} {
		if err := flags.Set(name, strings.Join(given, ",")); err != nil {
			return 0, 0, err
		}
	}
	if err := all.Set(); err != nil {
		return 0, 0, err
	}
	return Release(known.EmulationVersion().Minor()), Release(known.MinCompatibilityVersion().Minor()), errors.Join(known.Validate()...)
}

// A Feature is a gate in the release of a Set. Stage is that of Kubernetes, such as ALPHA; "" is stable.
type Feature struct {
	Name  Name
	Stage string
	On    bool
}

// Features returns all gates of the release, sorted by name.
func (s *Set) Features() ([]Feature, error) {
	gates, err := parse(table)
	if err != nil {
		return nil, err
	}
	err = gates.SetEmulationVersionAndMinCompatibilityVersion(version.MajorMinor(1, uint(s.Emulated())), version.MajorMinor(1, uint(s.Compatible())))
	if err != nil {
		return nil, err
	}
	var out []Feature
	all := gates.GetAll()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, Feature{Name(name), string(all[name].PreRelease), s.On(Name(name))})
	}
	return out, nil
}
