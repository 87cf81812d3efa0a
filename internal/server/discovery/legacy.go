package discovery

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// serveLegacy answers /api.
func (h *Handler) serveLegacy(w http.ResponseWriter, r *http.Request, set *resource.Set) {
	if !routed(w, r) {
		return
	}
	if h.serveAggregated(w, r, true) {
		return
	}
	answer(w, r, &metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
		Versions: coreVersions(set),
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{
			{ClientCIDR: "0.0.0.0/0", ServerAddress: h.address(r)},
		},
	})
}

// address returns host:port of the server for the client of r.
func (h *Handler) address(r *http.Request) string {
	if h.options.ServerAddress != "" {
		return h.options.ServerAddress
	}
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return a.String()
	}
	return r.Host
}

func coreVersions(set *resource.Set) []string {
	if g := set.Group(""); g != nil {
		return g.Versions
	}
	return []string{}
}

// serveGroups answers /apis.
func (h *Handler) serveGroups(w http.ResponseWriter, r *http.Request, v *groups) {
	if r.URL.Path == "/apis" && h.serveAggregated(w, r, false) {
		return
	}
	list := metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   []metav1.APIGroup{},
	}
	for _, g := range v.listed {
		if g.name != "" {
			list.Groups = append(list.Groups, apiGroup(g))
		}
	}
	answer(w, r, &list)
}

// serveGroup answers /apis/GROUP.
func serveGroup(w http.ResponseWriter, r *http.Request, g *group) {
	if g == nil {
		http.NotFound(w, r)
		return
	}
	doc := apiGroup(g)
	doc.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	answer(w, r, &doc)
}

func apiGroup(g *group) metav1.APIGroup {
	out := metav1.APIGroup{Name: g.name, Versions: make([]metav1.GroupVersionForDiscovery, len(g.versions))}
	for i, v := range g.versions {
		out.Versions[i] = metav1.GroupVersionForDiscovery{GroupVersion: v.groupVersion(g.name).String(), Version: v.name}
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

// serveVersion answers /api/VERSION and /apis/GROUP/VERSION.
func (h *Handler) serveVersion(w http.ResponseWriter, r *http.Request, g *resource.Group, name, version string) {
	if !g.Serves(version) {
		// Kubernetes has two forms of 404: one for its own groups and one for custom ones.
		if name == "" || g.Dialect().NoPathIsStatus {
			request.Fail(w, r, status.NoSuchPath())
			return
		}
		http.NotFound(w, r)
		return
	}
	dialect := g.DialectOf(version)
	if dialect.RoutesDiscovery && !routed(w, r) {
		return
	}
	if !dialect.CBORDiscovery {
		r = r.WithContext(codec.Offer{}.Context(r.Context()))
	}
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: schema.GroupVersion{Group: name, Version: version}.String(),
		APIResources: []metav1.APIResource{},
	}
	if name == "" {
		list.APIVersion = "" // as it was in Kubernetes 1.1
	}
	for _, d := range g.Definitions {
		if v := d.Version(version); v != nil && v.Served {
			list.APIResources = append(list.APIResources, h.apiResources(d, v)...)
		}
	}
	answer(w, r, &list)
}

// apiResources returns the rows of a resource and its subresources.
func (h *Handler) apiResources(d *resource.Definition, v *resource.Version) []metav1.APIResource {
	hash := ""
	if !d.Dialect.GatesStorageHash || h.options.Gates.On(gate.StorageVersionHash) {
		hash = storageVersionHash(d)
	}
	rows := []metav1.APIResource{{
		Name:               d.Plural,
		SingularName:       d.Singular,
		Namespaced:         d.Namespaced,
		Kind:               d.Kind,
		Verbs:              listedVerbs(d, v),
		ShortNames:         d.ShortNames,
		Categories:         d.Categories,
		StorageVersionHash: hash,
	}}
	for i := range v.Subresources {
		s := &v.Subresources[i]
		row := metav1.APIResource{
			Name:       d.Plural + "/" + s.Name,
			Namespaced: d.Namespaced,
			Kind:       d.Kind,
			Verbs:      s.Verbs,
		}
		if other, ok := otherKind(d, v, s); ok {
			row.Group, row.Version, row.Kind = other.Group, other.Version, other.Kind
		}
		rows = append(rows, row)
	}
	return rows
}

// otherKind returns the kind of a subresource if it differs from the object's. Group and version
// are set only if they differ too.
func otherKind(d *resource.Definition, v *resource.Version, s *resource.Subresource) (kind metav1.GroupVersionKind, ok bool) {
	kind = metav1.GroupVersionKind{Group: s.Kind.Group, Version: s.Kind.Version, Kind: s.Kind.Kind}
	if kind.Group == d.Group && kind.Version == v.Name {
		kind.Group, kind.Version = "", ""
	}
	return kind, kind.Kind != ""
}

// listedVerbs returns the verbs for discovery, without those that are currently rejected.
func listedVerbs(d *resource.Definition, v *resource.Version) []string {
	all := d.ListedVerbs()
	if !d.Terminating {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(verb string) bool {
		return verb == "create" || verb == "patch" || verb == "update"
	})
}

// storageVersionHash changes with the storage version. Kinds that are not stored have none.
func storageVersionHash(d *resource.Definition) string {
	as := resource.EncodingOf(d)
	if as.Empty() {
		return ""
	}
	sum := sha256.Sum256([]byte(as.Group + "/" + as.Version + "/" + as.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// encode returns the JSON of a document that always has one.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("discovery: " + err.Error())
	}
	return data
}
