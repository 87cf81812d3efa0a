package discovery

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
)

// A document is aggregated discovery: all groups with their versions and resources in one document.
type document struct {
	doc  []byte
	etag string
}

const aggregateKind = "APIGroupDiscoveryList"

// serveAggregated answers with aggregated discovery, of the core group or of all others, if the
// client accepts it. It reports whether it did.
func (h *Handler) serveAggregated(w http.ResponseWriter, r *http.Request, core bool) bool {
	group, version := apidiscoveryv2.SchemeGroupVersion.Group, apidiscoveryv2.SchemeGroupVersion.Version
	f, profile, ok := codec.AcceptProfile(r, group, version, aggregateKind)
	if !ok {
		return false
	}
	a := h.aggregated(r.Context(), core)
	switch peers := h.options.Peers; {
	case peers == nil:
	case profile == ownProfile:
		peers.Metrics().Local()
	case !core: // the core group is always that of this server, as in Kubernetes
		a = h.withPeers(r.Context(), a)
	}
	header := w.Header()
	header.Set("ETag", a.etag)
	header.Set("Vary", "Accept")
	header.Set("Cache-Control", "public")
	if r.Header.Get("If-None-Match") == a.etag {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	out := a.doc
	if f.Media != codec.JSON || f.Pretty {
		var err error
		if out, err = a.render(f); err != nil {
			request.Fail(w, r, err)
			return true
		}
	}
	request.AuditAnswer(r.Context(), func() ([]byte, error) { return a.doc, nil })
	header.Set("Content-Type", fmt.Sprintf("%s;g=%s;v=%s;as=%s", f.ContentType(), group, version, aggregateKind))
	_, _ = w.Write(out)
	return true
}

// render converts the document to another format.
func (a *document) render(f codec.Format) ([]byte, error) {
	if f.Media != codec.Protobuf {
		return f.Render(a.doc)
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(a.doc, &list); err != nil {
		return nil, err
	}
	return f.RenderValue(&list)
}

// buildAggregate builds aggregated discovery of the core group or of all others. item returns the
// part of one resource in one version; size is the expected length.
func buildAggregate(groups []*group, core bool, item func(*resource.Definition, *resource.Version) []byte, others remotes, size int) *document {
	doc := append(make([]byte, 0, size+1024), `{"kind":"`+aggregateKind+`","apiVersion":"`+apidiscoveryv2.SchemeGroupVersion.String()+`","metadata":{},"items":[`...)
	first := true
	for _, g := range groups {
		if (g.name == "") != core {
			continue
		}
		if !first {
			doc = append(doc, ',')
		}
		first = false
		doc = appendGroup(doc, g, item, others)
	}
	return newDocument(append(doc, "]}\n"...))
}

func newDocument(doc []byte) *document {
	return &document{doc: doc, etag: strconv.Quote(fmt.Sprintf("%X", sha512.Sum512(doc)))}
}

func appendGroup(doc []byte, g *group, item func(*resource.Definition, *resource.Version) []byte, others remotes) []byte {
	doc = append(doc, `{"metadata":{`...)
	if g.name != "" {
		doc = append(doc, `"name":"`...)
		doc = append(doc, g.name...)
		doc = append(doc, '"')
	}
	doc = append(doc, `},"versions":[`...)
	for i, v := range g.versions {
		if i > 0 {
			doc = append(doc, ',')
		}
		if v.remote == nil {
			doc = appendVersion(doc, v, item)
		} else if remote := others[v.groupVersion(g.name)]; remote != nil {
			doc = append(doc, remote...)
		} else {
			doc = append(doc, encode(apidiscoveryv2.APIVersionDiscovery{Version: v.name, Freshness: apidiscoveryv2.DiscoveryFreshnessStale})...)
		}
	}
	return append(doc, `]}`...)
}

// appendVersion appends a version that this server serves.
func appendVersion(doc []byte, own version, item func(*resource.Definition, *resource.Version) []byte) []byte {
	doc = append(doc, `{"version":"`...)
	doc = append(doc, own.name...)
	doc = append(doc, `","resources":[`...)
	first := true
	for _, d := range own.local.Definitions {
		v := d.Version(own.name)
		if v == nil || !v.Served {
			continue
		}
		if !first {
			doc = append(doc, ',')
		}
		first = false
		doc = append(doc, item(d, v)...)
	}
	return append(doc, `],"freshness":"Current"}`...)
}

// aggregatedResource returns the part of one resource in one version.
func aggregatedResource(d *resource.Definition, v *resource.Version) []byte {
	own := metav1.GroupVersionKind{Kind: d.Kind}
	if !d.Dialect.OmitsResponseGroup {
		own.Group, own.Version = d.Group, v.Name
	}
	row := apidiscoveryv2.APIResourceDiscovery{
		Resource:         d.Plural,
		ResponseKind:     &own,
		Scope:            apidiscoveryv2.ScopeCluster,
		SingularResource: d.Singular,
		Verbs:            listedVerbs(d, v),
		ShortNames:       d.ShortNames,
		Categories:       d.Categories,
	}
	if d.Namespaced {
		row.Scope = apidiscoveryv2.ScopeNamespace
	}
	for i := range v.Subresources {
		s := &v.Subresources[i]
		sub := apidiscoveryv2.APISubresourceDiscovery{Subresource: s.Name, ResponseKind: &own, Verbs: s.Verbs}
		if other, ok := otherKind(d, v, s); ok {
			sub.ResponseKind = &other
		}
		row.Subresources = append(row.Subresources, sub)
	}
	return encode(&row)
}
