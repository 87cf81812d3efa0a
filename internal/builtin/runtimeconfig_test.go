package builtin

import (
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/resource"
)

func TestRuntimeConfig(t *testing.T) {
	const usual = "v1/pods apps/v1/deployments batch/v1/jobs batch/v1/cronjobs resource.k8s.io/v1/deviceclasses"
	for _, c := range []struct{ config, served, err string }{
		{"", usual, ""},
		{"api/all=true", usual + " batch/v1beta1/cronjobs resource.k8s.io/v1alpha3/deviceclasses", ""},
		{"api/beta=true", usual + " batch/v1beta1/cronjobs", ""},
		{"api/alpha=true", usual + " resource.k8s.io/v1alpha3/deviceclasses", ""},
		{"api/ga=false,api/beta=true", "batch/v1beta1/cronjobs", ""},
		{"api/all=false,api/ga=true", usual, ""}, // the narrower key wins
		{"api/all=false,batch/v1=true", "batch/v1/jobs batch/v1/cronjobs", ""},
		{"api/all=false,batch/v1=true,batch/v1/jobs=false", "batch/v1/cronjobs", ""},
		{"api/all=false,batch/v1/jobs", "batch/v1/jobs", ""}, // no value is true
		{"api/all=false, batch/v1/jobs = T ,", "batch/v1/jobs", ""},
		{"batch/v1=false,batch/v1beta1/cronjobs=1", "v1/pods apps/v1/deployments batch/v1beta1/cronjobs resource.k8s.io/v1/deviceclasses", ""},
		{"v1=false", usual[len("v1/pods "):], ""},
		{"api/v1=false", usual[len("v1/pods "):], ""},
		{"/v1/pods=false", usual[len("v1/pods "):], ""},
		{"v1/none=false", usual[len("v1/pods "):], ""}, // the old form applies to the whole version
		{"/v1/none=false,api/legacy=false,apps/v1beta1=false", usual, ""},
		{"apps/v1beta1=true,apps/v1/none=true", usual, ""}, // versions without resources

		{"api/all=false", "", "invalid runtime-config with only api/all=false"},
		{"api/all=maybe", "", "invalid value api/all=maybe"},
		{"api/beta=T", "", "invalid value api/beta=T"},
		{"apps/v1=maybe", "", `invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax`},
		{"apps=true", "", "runtime-config invalid key apps"},
		{"a/b/c/d=true", "", "runtime-config invalid key a/b/c/d"},
		{"foo.io/v1=true,bar.io/v1=false,apps/v1=true", "", "unknown api groups bar.io/v1,foo.io/v1"},
		{"apps/v7=false", "", "group version apps/v7 that has not been registered"},
		{"apps/v1/Deployments=false", "", `invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not "Deployments"`},

		{"apiextensions.k8s.io/v1/customresourcedefinitions=false", "", "runtime-config apiextensions.k8s.io/v1/customresourcedefinitions is always served: leave it out"},
		{"apiextensions.k8s.io/v1=false", "", "runtime-config apiextensions.k8s.io/v1 is always served: leave it out"},
	} {
		var config RuntimeConfig
		if err := config.Set(c.config); err != nil {
			t.Fatal(err)
		}
		kinds := []*resource.Definition{
			of("", "pods", "v1"), of("apps", "deployments", "v1"), of("batch", "jobs", "v1"),
			of("batch", "cronjobs", "v1", "v1beta1"), of("resource.k8s.io", "deviceclasses", "v1", "v1alpha3"),
		}
		err := config.Apply(kinds, nil)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: %v, want %s", c.config, err, c.err)
			}
			continue
		}
		var served []string
		for _, d := range kinds {
			for _, v := range d.Versions {
				if v.Served {
					served = append(served, d.APIVersion(v.Name)+"/"+d.Plural)
				}
			}
		}
		for _, want := range strings.Fields(c.served) {
			served = without(t, c.config, served, want)
		}
		if err != nil || len(served) > 0 {
			t.Errorf("%s: %q are served, too, %v", c.config, served, err)
		}
	}
}

// of returns a resource with the versions, all of them served.
func of(group, plural string, versions ...string) *resource.Definition {
	d := resource.Definition{Group: group, Plural: plural}
	for _, v := range versions {
		d.Versions = append(d.Versions, &resource.Version{Name: v, Served: true})
	}
	return resource.New(d)
}

func without(t *testing.T, config string, served []string, want string) (out []string) {
	t.Helper()
	for _, s := range served {
		if s != want {
			out = append(out, s)
		}
	}
	if len(out) == len(served) {
		t.Errorf("%s: %s is not served", config, want)
	}
	return out
}
