package builtin

import (
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// A server has the versions of the release that it emulates. Newer ones are served on request only. It stores a
// version that compatible servers know.
func TestEmulation(t *testing.T) {
	const newer, named = "newer", "named"
	for _, tt := range []struct {
		config, emulated, compatible, options string
		served                                string // the stored version has an asterisk
		err                                   string
	}{
		{served: "a/v1*"},
		{config: "api/all=true", served: "a/v1* a/v1beta1 a/v1alpha1 c/v1beta1*"},
		{config: "api/all=true", emulated: "1.36", served: "a/v1 a/v1beta1* a/v1alpha1 c/v1beta1* c/v1alpha1"},
		{config: "api/all=true", emulated: "1.36", compatible: "1.36", served: "a/v1* a/v1beta1 a/v1alpha1 c/v1beta1* c/v1alpha1"},
		{config: "api/all=true", emulated: "1.35", served: "a/v1beta1* a/v1alpha1 c/v1alpha1"},
		{config: "api/all=true", emulated: "1.34", served: "a/v1alpha1*"},
		{emulated: "1.35", served: ""},
		{emulated: "1.35", config: "apps/v1beta1=true", options: newer, served: "a/v1 a/v1beta1*"},
		{emulated: "1.35", config: "apps/v1beta1=true,apps/v1=false", options: newer, served: "a/v1beta1*"},
		{emulated: "1.35", config: "apps/v1=true", options: named, served: "a/v1"},
		{emulated: "1.35", config: "apps/v1/a=true", options: named, served: "a/v1"},
		{emulated: "1.35", config: "api/all=true", options: named, served: "a/v1beta1* a/v1alpha1 c/v1alpha1"},
		{emulated: "1.35", config: "apps/v1/a=true",
			err: "cannot enable resource apps/v1, Resource=a in runtime-config because it is introduced at 1.36 after the current version 1.35. " +
				"Consider setting --runtime-config-emulation-forward-compatible=true"},
		{emulated: "1.35", config: "apps/v1=true",
			err: "cannot enable version apps/v1 in runtime-config because all the resources have been introduced after the current version 1.35. " +
				"Consider setting --runtime-config-emulation-forward-compatible=true"},
		{options: newer, err: "ServerRunOptions.EmulationForwardCompatible cannot be set to true if the emulation version is the same as the binary version"},
		{options: named, err: "ServerRunOptions.RuntimeConfigEmulationForwardCompatible cannot be set to true if the emulation version is the same as the binary version"},
	} {
		f := gate.Flag{Emulated: strings.Fields(tt.emulated), Compatible: strings.Fields(tt.compatible), ServesNewer: tt.options == newer, ServesNamed: tt.options == named}
		kinds := []*resource.Definition{
			during("a", "v1 36 0, v1beta1 35 0, v1alpha1 34 0"),
			during("c", "v1beta1 36 0, v1alpha1 35 37"),
		}
		kinds[1].Versions[0].Pinned = true
		gates, err := f.Gates()
		if err == nil {
			var config RuntimeConfig
			if err := config.Set(tt.config); err != nil {
				t.Fatal(err)
			}
			err = config.Apply(kinds, gates)
		}
		if err != nil || tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%+v: %v", tt, err)
			}
			continue
		}
		if got := servedOf(kinds); got != tt.served {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// during returns a resource of apps with versions: the name, the release that adds it, and the one that removes it.
func during(plural, versions string) *resource.Definition {
	d := resource.Definition{Group: "apps", Plural: plural}
	for v := range strings.SplitSeq(versions, ", ") {
		f := strings.Fields(v)
		d.Versions = append(d.Versions, &resource.Version{Name: f[0], Introduced: number(f[1]), Removed: number(f[2])})
	}
	d.Versions[0].Storage = true
	return resource.New(d)
}

func number(text string) (n int) {
	for _, digit := range text {
		n = 10*n + int(digit-'0')
	}
	return n
}

func servedOf(kinds []*resource.Definition) string {
	var out []string
	for _, d := range kinds {
		for _, v := range d.Versions {
			if !v.Served {
				continue
			}
			one := d.Plural + "/" + v.Name
			if v.Storage {
				one += "*"
			}
			out = append(out, one)
		}
	}
	return strings.Join(out, " ")
}
