package discovery

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/codec"
	"github.com/anykind/anykind/internal/request"
	"github.com/anykind/anykind/internal/resource"
)

// An aggregate is the list of all groups, their versions and resources in one
// document.
type aggregate struct {
	doc  []byte
	etag string
}

const aggregateKind = "APIGroupDiscoveryList"

// serveAggregated answers with the aggregate of the core group or of all others
// if the client asks for it. It reports whether it did.
func (h *Handler) serveAggregated(w http.ResponseWriter, r *http.Request, core bool) bool {
	group, version := apidiscoveryv2.SchemeGroupVersion.Group, apidiscoveryv2.SchemeGroupVersion.Version
	f, ok := codec.AcceptAs(r, group, version, aggregateKind)
	if !ok {
		return false
	}
	a := h.aggregate(core)
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
	header.Set("Content-Type", fmt.Sprintf("%s;g=%s;v=%s;as=%s", f.ContentType(), group, version, aggregateKind))
	_, _ = w.Write(out)
	return true
}

// render is the document in a format other than that in which it is kept.
func (a *aggregate) render(f codec.Format) ([]byte, error) {
	if f.Media != codec.Protobuf {
		return f.Render(a.doc)
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(a.doc, &list); err != nil {
		return nil, err
	}
	return f.RenderValue(&list)
}

// buildAggregate makes the aggregate of the core group or of all others. item
// returns the part of one resource in one version; size is how long the document
// may become.
func buildAggregate(set *resource.Set, core bool, item func(*resource.Definition, *resource.Version) []byte, size int) *aggregate {
	doc := append(make([]byte, 0, size+1024), `{"kind":"`+aggregateKind+`","apiVersion":"`+apidiscoveryv2.SchemeGroupVersion.String()+`","metadata":{},"items":[`...)
	first := true
	for _, g := range set.Groups() {
		if (g.Name == "") != core {
			continue
		}
		if !first {
			doc = append(doc, ',')
		}
		first = false
		doc = appendGroup(doc, g, item)
	}
	doc = append(doc, "]}\n"...)
	return &aggregate{doc: doc, etag: strconv.Quote(fmt.Sprintf("%X", sha512.Sum512(doc)))}
}

func appendGroup(doc []byte, g *resource.Group, item func(*resource.Definition, *resource.Version) []byte) []byte {
	doc = append(doc, `{"metadata":{`...)
	if g.Name != "" {
		doc = append(doc, `"name":"`...)
		doc = append(doc, g.Name...)
		doc = append(doc, '"')
	}
	doc = append(doc, `},"versions":[`...)
	for i, name := range g.Versions {
		if i > 0 {
			doc = append(doc, ',')
		}
		doc = append(doc, `{"version":"`...)
		doc = append(doc, name...)
		doc = append(doc, `","resources":[`...)
		first := true
		for _, d := range g.Definitions {
			v := d.Version(name)
			if v == nil || !v.Served {
				continue
			}
			if !first {
				doc = append(doc, ',')
			}
			first = false
			doc = append(doc, item(d, v)...)
		}
		doc = append(doc, `],"freshness":"Current"}`...)
	}
	return append(doc, `]}`...)
}

// aggregatedResource is the part of one resource in one version.
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
