package builtin

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/groupversion"
	"github.com/anykind/anykind/internal/object/resource"
)

// A RuntimeConfig selects the served versions and resources of the built-in kinds, like
// --runtime-config of kube-apiserver. By default a version is served unless it is alpha or beta.
// The server itself uses kinds that are not served.
type RuntimeConfig map[string]string

// sets are named sets of versions, in order of evaluation: the last one wins.
var sets = []struct {
	key      string
	versions *regexp.Regexp
}{
	{"api/all", regexp.MustCompile(``)},
	{"api/ga", stable},
	{"api/beta", regexp.MustCompile(`^v\d+beta\d+$`)},
	{"api/alpha", regexp.MustCompile(`^v\d+alpha\d+$`)},
}

var stable = regexp.MustCompile(`^v\d+$`)

// Set parses a flag: KEY=VALUE, or several of them separated by commas.
func (c *RuntimeConfig) Set(text string) error {
	if *c == nil {
		*c = RuntimeConfig{}
	}
	for pair := range strings.SplitSeq(text, ",") {
		if pair != "" {
			key, value, _ := strings.Cut(pair, "=")
			(*c)[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return nil
}

func (c *RuntimeConfig) String() string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(*c)) {
		pairs = append(pairs, key+"="+(*c)[key])
	}
	return strings.Join(pairs, ",")
}

// Type returns the name of the value type in help.
func (*RuntimeConfig) Type() string { return "mapStringString" }

// Apply sets which versions of the kinds are served and which one is stored, in the release that a server
// emulates. The kinds must not be in use yet.
func (c RuntimeConfig) Apply(kinds []*resource.Definition, gates *gate.Set) error {
	wanted, err := c.parse()
	if err != nil {
		return err
	}
	if err := wanted.check(); err != nil {
		return err
	}
	wanted.gates, wanted.newer, wanted.inUse = gates, map[schema.GroupVersion]bool{}, map[schema.GroupVersion]bool{}
	for _, d := range kinds {
		if err := wanted.apply(d); err != nil {
			return err
		}
	}
	return wanted.checkNewer()
}

// A selection is a parsed RuntimeConfig.
type selection struct {
	sets      map[string]bool
	versions  map[schema.GroupVersion]bool
	resources map[schema.GroupVersionResource]bool
	gates     *gate.Set
	// newer are the selected versions with kinds newer than the emulated release, and inUse are those with served kinds.
	newer, inUse map[schema.GroupVersion]bool
}

func (s selection) serves(d *resource.Definition, version string) bool {
	on := stable.MatchString(version)
	for _, set := range sets {
		if enabled, ok := s.sets[set.key]; ok && set.versions.MatchString(version) {
			on = enabled
		}
	}
	gv := schema.GroupVersion{Group: d.Group, Version: version}
	if enabled, ok := s.versions[gv]; ok {
		on = enabled
	}
	if enabled, ok := s.resources[gv.WithResource(d.Plural)]; ok {
		on = enabled
	}
	return on
}

func (c RuntimeConfig) parse() (selection, error) {
	s := selection{sets: map[string]bool{}, versions: map[schema.GroupVersion]bool{}, resources: map[schema.GroupVersionResource]bool{}}
	c = c.withoutOldNames()
	if len(c) == 1 && c["api/all"] == "false" {
		return s, fmt.Errorf("invalid runtime-config with only api/all=false")
	}
	for _, set := range sets {
		if value, ok := c[set.key]; ok {
			if value != "true" && value != "false" {
				return s, fmt.Errorf("invalid value %s=%s", set.key, value)
			}
			s.sets[set.key] = value == "true"
			delete(c, set.key)
		}
	}
	if err := c.checkGroups(); err != nil {
		return s, err
	}
	for _, key := range slices.Sorted(maps.Keys(c)) {
		gv, plural := split(key)
		if !slices.Contains(groupversion.OfServer(), gv) {
			return s, fmt.Errorf("group version %s that has not been registered", gv)
		}
		on := true
		if value := c[key]; value != "" {
			var err error
			if on, err = strconv.ParseBool(value); err != nil {
				return s, fmt.Errorf("invalid value of %s: %s, err: %w", key, value, err)
			}
		}
		switch {
		case plural == "":
			s.versions[gv] = on
		case plural != strings.ToLower(plural):
			return s, fmt.Errorf("invalid key %s: group/version/resource and resource is always lowercase plural, not %q", key, plural)
		default:
			s.resources[gv.WithResource(plural)] = on
		}
	}
	return s, nil
}

// withoutOldNames returns a copy in which the core group has the same form as others. The old form
// cannot name a single resource: it applies to all of them.
func (c RuntimeConfig) withoutOldNames() RuntimeConfig {
	out := RuntimeConfig{}
	for _, key := range slices.Sorted(maps.Keys(c)) {
		switch version, _, _ := strings.Cut(strings.TrimPrefix(key, "api/"), "/"); {
		case key == "api/legacy":
		case version == "v1":
			out["/v1"] = c[key]
		default:
			out[key] = c[key]
		}
	}
	return out
}

// checkGroups rejects keys of groups that Kubernetes does not have.
func (c RuntimeConfig) checkGroups() error {
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if n := strings.Count(key, "/"); n != 1 && n != 2 {
			return fmt.Errorf("runtime-config invalid key %s", key)
		}
		gv, _ := split(key)
		if !slices.ContainsFunc(groupversion.OfServer(), func(known schema.GroupVersion) bool { return known.Group == gv.Group }) {
			unknown = append(unknown, gv.String())
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("unknown api groups %s", strings.Join(slices.Compact(unknown), ","))
	}
	return nil
}

// split parses GROUP/VERSION/RESOURCE, where the resource is optional.
func split(key string) (gv schema.GroupVersion, plural string) {
	gv.Group, key, _ = strings.Cut(key, "/")
	gv.Version, plural, _ = strings.Cut(key, "/")
	return gv, plural
}

// check rejects a configuration without the kind CustomResourceDefinition. As in Kubernetes,
// enabling a version without resources, such as apps/v1beta1, has no effect.
func (s selection) check() error {
	const name = apiextensionsv1.GroupName + "/v1"
	refused := func(gv schema.GroupVersion, plural string, on bool) error {
		if !on && gv == apiextensionsv1.SchemeGroupVersion {
			return fmt.Errorf("runtime-config %s%s is always served: leave it out", name, plural)
		}
		return nil
	}
	for gv, on := range s.versions {
		if err := refused(gv, "", on); err != nil {
			return err
		}
	}
	for gvr, on := range s.resources {
		if err := refused(gvr.GroupVersion(), "/"+gvr.Resource, on); err != nil {
			return err
		}
	}
	return nil
}
