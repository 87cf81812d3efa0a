// Package request describes a request: its target, its user, and its error answers.
//
// The server parses a request once and stores the result in the context, where all handlers read
// it. The package knows the form of API paths. It does not know the existing resources, nor the
// rights of users.
package request

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Info describes a request by its method, path and query.
type Info struct {
	// IsResource is true for requests for objects. For other requests only Verb and Path are set.
	IsResource bool
	// Verb is the API's verb for a resource, and otherwise the HTTP method in
	// lower case.
	Verb        string
	Path        string
	Group       string
	Version     string
	Namespace   string
	Resource    string
	Subresource string
	Name        string

	// FieldSelector and LabelSelector are those of the query, verbatim, if the request is for
	// several objects.
	FieldSelector, LabelSelector string

	// Below is the rest of the path after the subresource, with its slash.
	Below string
	// Selected is true if Name comes from FieldSelector instead of the path.
	Selected bool
	// Incomplete is true if the path ends before the resource.
	Incomplete bool
	// ByPath is true if the verb is part of the path, as in /api/v1/watch/pods.
	ByPath bool
	// OfNamespace is true if Namespace is the object itself.
	OfNamespace bool
}

// IsWatch reports whether the request is a watch.
func (i *Info) IsWatch() bool { return i.IsResource && i.Verb == "watch" }

// IsLongRunning reports whether the request has no timeout: a watch, or one of Kubernetes'
// streaming subresources.
func (i *Info) IsLongRunning() bool {
	if !i.IsResource {
		return false
	}
	switch i.Subresource {
	case "attach", "exec", "log", "portforward", "proxy":
		return true
	default:
		return i.Verb == "watch" || i.Verb == "proxy"
	}
}

// IsReadOnly reports whether the request changes nothing.
func (i *Info) IsReadOnly() bool {
	switch i.Verb {
	case "get", "list", "watch", "head", "options":
		return true
	default:
		return false
	}
}

// Parse parses the method, path and query of a request as Kubernetes does.
func Parse(r *http.Request) Info {
	info := Info{Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		info.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		info.Group, info.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return info
	}
	info.IsResource = true
	info.ByPath = parts[0] == "watch" || parts[0] == "proxy" // deprecated; whatever the method
	switch {
	case info.ByPath && len(parts) == 1:
		info.Incomplete = true
		return info
	case info.ByPath:
		info.Verb, parts = parts[0], parts[1:]
	default:
		info.Verb = verbs[r.Method]
	}
	info.place(parts)
	if info.Name == "" {
		info.collection(r)
	}
	if !info.ByPath && takesSelectors(info.Verb) && MayHave(r, "Selector") {
		query := r.URL.Query()
		info.FieldSelector, info.LabelSelector = query.Get("fieldSelector"), query.Get("labelSelector")
	}
	return info
}

// verbs maps methods on an object to verbs. Other methods have no verb in Kubernetes.
var verbs = map[string]string{
	http.MethodPost:   "create",
	http.MethodGet:    "get",
	http.MethodHead:   "get",
	http.MethodPut:    "update",
	http.MethodPatch:  "patch",
	http.MethodDelete: "delete",
}

// place parses the part of a resource path after the version.
func (i *Info) place(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		i.Namespace = parts[1]
		// The segment after the name is a resource in the namespace, or a subresource of the
		// namespace itself.
		i.OfNamespace = len(parts) == 2 || parts[2] == "status" || parts[2] == "finalize"
		if !i.OfNamespace {
			parts = parts[2:]
		}
	}
	i.Resource = parts[0]
	if len(parts) > 1 {
		i.Name = parts[1]
	}
	if len(parts) > 2 && i.Verb != "proxy" {
		i.Subresource = parts[2]
		if len(parts) > 3 {
			i.Below = "/" + strings.Join(parts[3:], "/")
		}
	}
}

// collection changes the verb to that for several objects. A selector of one name sets that name.
func (i *Info) collection(r *http.Request) {
	switch i.Verb {
	case "delete":
		i.Verb = "deletecollection"
	case "get":
		i.Verb = "list"
		if wantsWatch(r) {
			i.Verb = "watch"
		}
		if MayHave(r, "fieldSelector") {
			i.Name = selectedName(r.URL.Query())
			i.Selected = i.Name != ""
		}
	}
}

func takesSelectors(verb string) bool {
	return verb == "list" || verb == "watch" || verb == "deletecollection"
}

// selectedName returns the name that the field selector of a query selects. A malformed query
// selects none.
func selectedName(query url.Values) string {
	var o metav1.ListOptions
	if metav1.Convert_url_Values_To_v1_ListOptions(&query, &o, nil) != nil {
		return ""
	}
	if _, err := labels.Parse(o.LabelSelector); err != nil {
		return ""
	}
	selector, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return ""
	}
	if name, ok := selector.RequiresExactMatch("metadata.name"); ok && len(content.IsPathSegmentName(name)) == 0 {
		return name
	}
	return ""
}

// MayHave reports whether a query may contain a key. Most queries do not, and are not parsed.
func MayHave(r *http.Request, key string) bool {
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		k, _, _ := strings.Cut(part, "=")
		if strings.Contains(k, key) || strings.Contains(k, "%") { // an escape may hide the key
			return true
		}
	}
	return false
}

func wantsWatch(r *http.Request) bool {
	if !MayHave(r, "watch") {
		return false
	}
	values, ok := r.URL.Query()["watch"]
	if !ok {
		return false
	}
	switch strings.ToLower(values[0]) {
	case "false", "0":
		return false
	default:
		return true
	}
}
