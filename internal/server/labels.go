package server

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/request"
	"github.com/anykind/anykind/internal/resource"
)

// labels name what a request was about. Every value is one of the server's own:
// a client that makes up names does not make series.
type labels struct {
	verb, group, version, resource, subresource, scope string
	dryRun                                             string
	code                                               int
}

// values are those of the labels that all metrics of requests have.
func (l labels) values() []string {
	return []string{l.verb, l.group, l.version, l.resource, l.subresource, l.scope}
}

// dryRun is what a request says of it: nothing, All, or something else.
func dryRun(r *http.Request) string {
	if !strings.Contains(r.URL.RawQuery, "dryRun") {
		return ""
	}
	said := r.URL.Query()["dryRun"]
	switch other := func(s string) bool { return s != metav1.DryRunAll }; {
	case len(said) == 0:
		return ""
	case slices.ContainsFunc(said, other):
		return "invalid"
	default:
		return metav1.DryRunAll
	}
}

// verbs are the words of the metrics for the verbs of the API.
var verbs = map[string]string{
	"get":              "GET",
	"list":             "LIST",
	"watch":            "WATCH",
	"create":           "POST",
	"update":           "PUT",
	"patch":            "PATCH",
	"delete":           "DELETE",
	"deletecollection": "DELETECOLLECTION",
	"post":             "POST",
	"put":              "PUT",
	"head":             "GET",
}

// paths are the roots of what is not a resource, as kube-apiserver counts them.
var paths = []struct{ root, subresource string }{
	{"/healthz", "/healthz"},
	{"/livez", "/livez"},
	{"/readyz", "/readyz"},
	{"/api", "api"},
	{"/apis", "apis"},
	{"/openapi/v2", "openapi/v2"},
	{"/openapi/v3", "openapi/v3"},
	{"/version", "version"},
	{"/metrics", "metrics"},
	{"/debug", "debug"},
}

// labelsOf takes every string from the Catalog or from here, also because one
// taken from the request would keep it in memory.
func labelsOf(info request.Info, catalog *resource.Catalog) labels {
	l := labels{verb: verbs[info.Verb]}
	if l.verb == "" {
		l.verb = "OTHER"
	}
	if !info.IsResource {
		for _, p := range paths {
			if under(info.Path, p.root) {
				l.subresource = p.subresource
				break
			}
		}
		return l
	}
	d := catalog.Set().Lookup(info.Group, info.Resource)
	if d == nil {
		return l
	}
	v := d.Version(info.Version)
	if v == nil {
		return l
	}
	l.group, l.version, l.resource, l.scope = d.Group, v.Name, d.Plural, scope(info)
	if s := v.Subresource(info.Subresource); s != nil {
		l.subresource = s.Name
	}
	return l
}

func scope(info request.Info) string {
	switch {
	case info.Name != "" || info.Verb == "create":
		return "resource"
	case info.Namespace != "":
		return "namespace"
	default:
		return "cluster"
	}
}
