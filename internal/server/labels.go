package server

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
)

// labels describe a request in metrics. Every value comes from the server: a client cannot create
// series by inventing names.
type labels struct {
	verb, group, version, resource, subresource, scope, component string
	dryRun                                                        string
	code                                                          int
}

// values returns the values of the labels that all metrics of requests have.
func (l labels) values() []string {
	return []string{l.verb, l.group, l.version, l.resource, l.subresource, l.scope, l.component}
}

// bodyVerb returns the verb in the metric of body sizes; "" for a request that it does not count.
func (l labels) bodyVerb() string {
	if l.scope == "" {
		return ""
	}
	switch l.verb {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch, verbApply:
		return "patch"
	case http.MethodDelete:
		if l.scope != scopeResource {
			return "delete_collection"
		}
		return "delete"
	default:
		return ""
	}
}

// dryRun returns the label for the dryRun parameter: empty, All or invalid.
func dryRun(r *http.Request) string {
	if !strings.Contains(r.URL.RawQuery, "dryRun") {
		return ""
	}
	values := r.URL.Query()["dryRun"]
	switch other := func(s string) bool { return s != metav1.DryRunAll }; {
	case len(values) == 0:
		return ""
	case slices.ContainsFunc(values, other):
		return "invalid"
	default:
		return metav1.DryRunAll
	}
}

// component is the label of requests that this server answers itself.
const component = "apiserver"

// Scopes of requests.
const (
	scopeResource  = "resource"
	scopeNamespace = "namespace"
	scopeCluster   = "cluster"
)

// Verbs of metrics other than HTTP methods.
const (
	verbList    = "LIST"
	verbWatch   = "WATCH"
	verbApply   = "APPLY"
	verbConnect = "CONNECT"
	verbOther   = "other"
)

// paths has the labels of counted paths that are no resources.
var paths = map[string]labels{
	"/healthz":    {subresource: "/healthz"},
	"/livez":      {subresource: "/livez"},
	"/readyz":     {subresource: "/readyz"},
	"/api":        {subresource: "api", component: component},
	"/apis":       {subresource: "apis", component: component},
	"/openapi/v3": {subresource: "openapi/v3"},
	"/statusz":    {resource: "statusz", component: component},
	"/flagz":      {resource: "flagz", component: component},
}

// labelsOf returns the labels of a request, and whether it is counted: only requests for existing
// resources are. Every string comes from the Catalog or from this package. A string of the
// request would also keep that request in memory.
func labelsOf(info *request.Info, r *http.Request, catalog *resource.Catalog) (l labels, counted bool) {
	if !info.IsResource {
		l, counted = paths[info.Path]
		if !counted && strings.HasPrefix(info.Path, "/openapi/v3/") {
			l, counted = labels{subresource: "openapi/v3/"}, true
		}
		if l.resource != "" {
			l.group, l.version = zVersion(r)
		}
		l.verb = methodVerb(r, "")
		return l, counted
	}
	d := catalog.Set().Lookup(info.Group, info.Resource)
	if d == nil || !hasPath(d, info) {
		return l, false
	}
	v := d.Version(info.Version)
	if v == nil || !v.Served {
		return l, false
	}
	l = labels{group: d.Group, version: v.Name, resource: d.Plural, component: component}
	if info.Subresource != "" {
		s := v.Subresource(info.Subresource)
		if s == nil {
			return l, false
		}
		l.subresource = s.Name
	}
	l.scope = scope(info, info.Name != "" && !(info.Selected && d.Dialect.CountsByPath))
	l.verb = verbOf(info, r, l.scope)
	return l, true
}

// hasPath reports whether a kind has the path of the request.
func hasPath(d *resource.Definition, info *request.Info) bool {
	switch {
	case !d.Namespaced:
		return info.Namespace == "" || info.OfNamespace
	case info.Namespace != "":
		return !info.OfNamespace
	default:
		return info.Verb == "list" || info.Verb == "watch"
	}
}

// scope returns the scope of a request: one object, a namespace, or the cluster.
func scope(info *request.Info, named bool) string {
	switch {
	case named || info.Verb == "create":
		return scopeResource
	case info.Namespace != "":
		return scopeNamespace
	default:
		return scopeCluster
	}
}

func verbOf(info *request.Info, r *http.Request, scope string) string {
	switch info.Subresource {
	case "attach", "exec", "log", "portforward", "proxy":
		return verbConnect
	}
	if info.Verb == "watch" {
		return verbWatch
	}
	return methodVerb(r, scope)
}

// methodVerb returns the verb of a method. Of the patch types only an apply in YAML has a verb of
// its own, as in Kubernetes.
func methodVerb(r *http.Request, scope string) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		if scope == scopeNamespace || scope == scopeCluster {
			return verbList
		}
		return http.MethodGet
	case http.MethodPatch:
		if r.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType) {
			return verbApply
		}
		return http.MethodPatch
	case http.MethodPost:
		return http.MethodPost
	case http.MethodPut:
		return http.MethodPut
	case http.MethodDelete:
		return http.MethodDelete
	default:
		return verbOther
	}
}
