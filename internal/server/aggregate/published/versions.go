package published

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/server/aggregate"
)

// A Version is the discovery of a version of a group in a Backend.
type Version struct {
	// Resources of the version; empty if Err is set.
	Resources []apidiscoveryv2.APIResourceDiscovery
	// Encoded is the version in the format of aggregated discovery, as JSON.
	Encoded []byte
	// Err is the error of the request.
	Err error
}

// versions holds the discovery of a Backend's versions. Versions that the Backend does not serve
// are missing.
type versions map[schema.GroupVersion]*Version

// Versions returns the discovery of the versions of all Backends.
func (l *Library) Versions(ctx context.Context, services *aggregate.Services, timeout time.Duration) map[schema.GroupVersion]*Version {
	if !services.Remote() {
		return nil
	}
	out := map[schema.GroupVersion]*Version{}
	var mu sync.Mutex
	each(services, func(all []*aggregate.Service) {
		found, _, err := l.resources.get(ctx, all, timeout)
		mu.Lock()
		defer mu.Unlock()
		for _, s := range all {
			out[s.GroupVersion()] = versionOf(s, found, err)
		}
	})
	return out
}

func versionOf(s *aggregate.Service, found versions, err error) *Version {
	if v := found[s.GroupVersion()]; v != nil && err == nil {
		return v
	}
	return newVersion(s.Version, nil, err)
}

// newVersion returns a Version with resources or an error.
func newVersion(name string, resources []apidiscoveryv2.APIResourceDiscovery, err error) *Version {
	v := &Version{Resources: resources, Err: err}
	said := apidiscoveryv2.APIVersionDiscovery{Version: name, Resources: resources, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	if err != nil {
		said.Resources, said.Freshness = nil, apidiscoveryv2.DiscoveryFreshnessStale
	}
	var failed error
	if v.Encoded, failed = json.Marshal(said); failed != nil {
		panic("published: " + failed.Error()) // It has only strings.
	}
	return v
}

// acceptsAll requests aggregated discovery.
const acceptsAll = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// fetchVersions requests all versions in one document, or one by one if the Backend has no
// aggregated discovery.
func fetchVersions(ctx context.Context, services []*aggregate.Service, before versions, etag string) (versions, string, error) {
	for _, gv := range versionsOf(services) {
		if before[gv] == nil {
			etag = "" // for a version that the document does not have
		}
	}
	a, err := ask(ctx, services[0].Backend, "/apis", acceptsAll, etag, mostBytes)
	switch {
	case err != nil:
		return nil, "", err
	case a.code == http.StatusNotModified && etag != "":
		return before, etag, nil
	case a.code == http.StatusServiceUnavailable:
		return nil, "", fmt.Errorf("the service answers with code %d", a.code)
	case a.code == http.StatusOK && isAggregated(a.header.Get("Content-Type")):
		found, err := parseAggregated(a.body, services)
		return found, a.header.Get("ETag"), err
	}
	found := versions{}
	for _, s := range services {
		if found[s.GroupVersion()], err = fetchVersion(ctx, s); err != nil {
			return nil, "", err
		}
	}
	return found, "", nil
}

func isAggregated(contentType string) bool {
	media, params, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json" && params["g"] == apidiscoveryv2.GroupName && params["v"] == "v2" && params["as"] == "APIGroupDiscoveryList"
}

func parseAggregated(body []byte, services []*aggregate.Service) (versions, error) {
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	found := versions{} // and for versions that the document does not have
	for _, gv := range versionsOf(services) {
		found[gv] = newVersion(gv.Version, nil, nil)
	}
	for i := range list.Items {
		g := &list.Items[i]
		for j := range g.Versions {
			gv := schema.GroupVersion{Group: g.Name, Version: g.Versions[j].Version}
			if found[gv] != nil {
				found[gv] = newVersion(gv.Version, withKinds(g.Versions[j].Resources), nil)
			}
		}
	}
	return found, nil
}

// withKinds gives every resource a responseKind, if need be an empty one: some clients expect it.
func withKinds(resources []apidiscoveryv2.APIResourceDiscovery) []apidiscoveryv2.APIResourceDiscovery {
	for i := range resources {
		r := &resources[i]
		if r.ResponseKind == nil {
			r.ResponseKind = &metav1.GroupVersionKind{}
		}
		for j := range r.Subresources {
			if r.Subresources[j].ResponseKind == nil {
				r.Subresources[j].ResponseKind = &metav1.GroupVersionKind{}
			}
		}
	}
	return resources
}

// fetchVersion requests the resources of one version.
func fetchVersion(ctx context.Context, s *aggregate.Service) (*Version, error) {
	a, err := ask(ctx, s.Backend, s.Path(), "application/json", "", mostBytes)
	if err != nil {
		return nil, err
	}
	if a.code != http.StatusOK {
		return nil, fmt.Errorf("the service answers %s with code %d", s.Path(), a.code)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(a.body, &list); err != nil {
		return nil, err
	}
	resources, err := together(list.APIResources)
	if err != nil {
		return nil, err
	}
	return newVersion(s.Version, resources, nil), nil
}

// together merges rows (one for each resource and subresource) into one item for each resource.
func together(rows []metav1.APIResource) (out []apidiscoveryv2.APIResourceDiscovery, err error) {
	kindOf := func(r *metav1.APIResource) *metav1.GroupVersionKind {
		return &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
	}
	at := map[string]int{}
	for i := range rows {
		if r := &rows[i]; !strings.Contains(r.Name, "/") {
			at[r.Name] = len(out)
			out = append(out, apidiscoveryv2.APIResourceDiscovery{
				Resource: r.Name, Scope: scopeOf(r), ResponseKind: kindOf(r), Verbs: r.Verbs,
				ShortNames: r.ShortNames, Categories: r.Categories, SingularResource: r.SingularName,
			})
		}
	}
	for i := range rows {
		r := &rows[i]
		name, sub, ok := strings.Cut(r.Name, "/")
		if !ok {
			continue
		}
		parent, known := at[name]
		if !known {
			parent = len(out)
			at[name] = parent
			out = append(out, apidiscoveryv2.APIResourceDiscovery{Resource: name, Scope: scopeOf(r), ResponseKind: &metav1.GroupVersionKind{}})
		}
		if out[parent].Scope != scopeOf(r) {
			return nil, fmt.Errorf("%s is in namespaces where %s is not, or the other way", r.Name, name)
		}
		out[parent].Subresources = append(out[parent].Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: sub, Verbs: r.Verbs, ResponseKind: kindOf(r),
		})
	}
	return out, nil
}

func scopeOf(r *metav1.APIResource) apidiscoveryv2.ResourceScope {
	if r.Namespaced {
		return apidiscoveryv2.ScopeNamespace
	}
	return apidiscoveryv2.ScopeCluster
}
