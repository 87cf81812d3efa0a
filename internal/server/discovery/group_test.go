package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/aggregate"
	"github.com/anykind/anykind/internal/server/aggregate/published"
)

// others returns APIServices that send GROUP/VERSION to another server.
func others(priorities map[string][2]int32) *aggregate.Services {
	var all []*aggregate.Service
	for name, p := range priorities {
		group, version, _ := strings.Cut(name, "/")
		all = append(all, &aggregate.Service{
			Name: version + "." + group, Group: group, Version: version, GroupPriority: p[0], VersionPriority: p[1],
			Available: true, Backend: &aggregate.Backend{},
		})
	}
	return aggregate.Arranged(all...)
}

// shown returns the groups of an answer, with their versions in order.
func shown(t *testing.T, h *Handler, path, accept string) string {
	t.Helper()
	body := ask(h, "GET", path, "Accept: "+accept).Body.Bytes()
	var list struct {
		Groups []metav1.APIGroup
		Items  []apidiscoveryv2.APIGroupDiscovery
	}
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var out []string
	for _, g := range list.Groups {
		var versions []string
		for _, v := range g.Versions {
			versions = append(versions, v.Version)
		}
		out = append(out, g.Name+":"+strings.Join(versions, ","))
	}
	for _, g := range list.Items {
		var versions []string
		for _, v := range g.Versions {
			says := v.Version
			if v.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
				says += " stale"
			}
			if len(v.Resources) == 0 {
				says += " without resources"
			}
			versions = append(versions, says)
		}
		out = append(out, g.Name+":"+strings.Join(versions, ","))
	}
	return strings.Join(out, "\n")
}

// The order of versions does not depend on whether their APIServices exist already.
func TestOrderBeforeAPIServices(t *testing.T) {
	d := resource.New(resource.Definition{
		Group: "local.dev", Plural: "things", Kind: "Thing", ListKind: "ThingList", GroupPriority: 16000, Dialect: resource.CompiledIn,
		StoragePrefix: resource.BuiltInPrefix("things"),
		Versions: []*resource.Version{
			{Name: "v1", Served: true, Storage: true, Priority: 9},
			{Name: "v1beta1", Served: true, Priority: 15},
			{Name: "v1alpha1", Served: true, Priority: 12},
		},
	})
	var all, some []*aggregate.Service
	for i, v := range d.Versions {
		all = append(all, &aggregate.Service{Name: v.Name + ".local.dev", Group: "local.dev", Version: v.Name, GroupPriority: 16000, VersionPriority: int32(v.Priority)})
		if i != 1 {
			some = append(some, all[i])
		}
	}
	for _, services := range []*aggregate.Services{noServices, aggregate.Arranged(some...), aggregate.Arranged(all...)} {
		var versions []string
		for _, v := range newGroups(resource.NewSet([]*resource.Definition{d}), services).group("local.dev").versions {
			versions = append(versions, v.name)
		}
		if got := strings.Join(versions, " "); got != "v1beta1 v1alpha1 v1" {
			t.Errorf("the order is %s", got)
		}
	}
}

const whole2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// Versions of other servers are sorted among local ones by priority. A remote version replaces a
// local one.
func TestVersionsOfOthers(t *testing.T) {
	services := others(map[string][2]int32{
		"high.dev/v1":              {19000, 1},
		"middle.dev/v1alpha1":      {2000, 15},
		"middle.dev/v1":            {2000, 10},
		"aaa.dev/v1":               {1000, 15},
		"disc.anykind.dev/v1beta1": {1000, 200},
		"low.dev/v1":               {1, 1},
	})
	says := map[schema.GroupVersion]*published.Version{}
	for s := range services.Remotes() {
		v := &published.Version{Encoded: []byte(`{"version":"` + s.Version + `","resources":[{"resource":"things","scope":"Cluster","verbs":["get"]}],"freshness":"Current"}`)}
		if s.Group == "low.dev" {
			v = &published.Version{Encoded: []byte(`{"version":"v1","freshness":"Stale"}`), Err: errors.New("down")}
		}
		if s.Group != "aaa.dev" {
			says[s.GroupVersion()] = v
		}
	}
	h, _ := newHandler(t, Options{
		Services:  func(context.Context) *aggregate.Services { return services },
		Published: func(context.Context, *aggregate.Services) map[schema.GroupVersion]*published.Version { return says },
	})
	const merged = `high.dev:v1
apiextensions.k8s.io:v1
coordination.k8s.io:v1
middle.dev:v1alpha1,v1
aaa.dev:v1 stale without resources
disc.anykind.dev:v1beta1,v1
low.dev:v1 stale without resources`
	if got := shown(t, h, "/apis", whole2); got != merged {
		t.Errorf("got\n%s\nwant\n%s", got, merged)
	}
	listed := strings.NewReplacer(" stale", "", " without resources", "").Replace(merged)
	if got := shown(t, h, "/apis", "application/json"); got != listed {
		t.Errorf("/apis lists\n%s\nwant\n%s", got, listed)
	}
	if w := ask(h, "GET", "/apis/middle.dev"); !strings.Contains(w.Body.String(), `"preferredVersion":{"groupVersion":"middle.dev/v1alpha1"`) {
		t.Error(w.Body)
	}
	if w := ask(h, "GET", "/"); !strings.Contains(w.Body.String(), `"/apis/middle.dev/v1alpha1"`) {
		t.Error(w.Body)
	}

	// The ETag changes when the discovery of another server changes or disappears.
	etag := func() string { return ask(h, "GET", "/apis", "Accept: "+whole2).Header().Get("ETag") }
	before := etag()
	if again := etag(); again != before {
		t.Errorf("the ETag of the same is %s and %s", before, again)
	}
	delete(says, schema.GroupVersion{Group: "high.dev", Version: "v1"})
	changed := etag()
	services = others(nil)
	if last := etag(); before == changed || changed == last || before == last {
		t.Errorf("the ETags of three documents are %s, %s and %s", before, changed, last)
	}
	if w := ask(h, "GET", "/apis/middle.dev"); w.Code != 404 {
		t.Error(w.Code, w.Body)
	}
}
