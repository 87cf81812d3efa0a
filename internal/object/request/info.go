// Package request describes a request: what the client asks for, who the client is, and how
// an error is answered.
//
// The server parses a request once and puts the result into the context. Everybody who
// handles the request reads it there. The package knows the form of API paths. It does not
// know which resources exist, or who may do what.
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

// Info says what a request asks for, as far as its line tells.
type Info struct {
	// IsResource tells requests for objects from all others, for which only
	// Verb and Path are set.
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

	// FieldSelector and LabelSelector are those of the query, as they are, where it is about
	// several objects.
	FieldSelector, LabelSelector string

	// Below is the rest of the path after the subresource, with its slash.
	Below string
	// Selected is set where Name is not in the path, but the only one that FieldSelector selects.
	Selected bool
	// Incomplete is set where the path ends before it says what it is about.
	Incomplete bool
	// ByPath is set where the verb is part of the path, as in /api/v1/watch/pods.
	ByPath bool
	// OfNamespace is set where Namespace is the object itself, not where it is.
	OfNamespace bool
}

// IsWatch reports whether the request follows what happens.
func (i *Info) IsWatch() bool { return i.IsResource && i.Verb == "watch" }

// IsLongRunning reports whether the request may take as long as it wants: a watch, or
// one of the subresources that Kubernetes streams.
func (i *Info) IsLongRunning() bool {
	if !i.IsResource {
		return false
	}
	switch i.Subresource {
	case "attach", "exec", "log", "portforward", "proxy":
		return true
	default:
		return i.Verb == "watch"
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

// Parse reads the line of a request, as Kubernetes does.
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
	info.ByPath = parts[0] == "watch" || parts[0] == "proxy" // of old: whatever the method is
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
	if !info.ByPath && takesSelectors(info.Verb) && mayHave(r, "Selector") {
		query := r.URL.Query()
		info.FieldSelector, info.LabelSelector = query.Get("fieldSelector"), query.Get("labelSelector")
	}
	return info
}

// verbs are those of methods on an object. For others Kubernetes has no word.
var verbs = map[string]string{
	http.MethodPost:   "create",
	http.MethodGet:    "get",
	http.MethodHead:   "get",
	http.MethodPut:    "update",
	http.MethodPatch:  "patch",
	http.MethodDelete: "delete",
}

// place reads what comes after the version in the path of a resource.
func (i *Info) place(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		i.Namespace = parts[1]
		// What follows the name is a resource in the namespace, or a
		// subresource of the namespace itself.
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

// collection makes the verb one of several objects. A selector of one name names that object.
func (i *Info) collection(r *http.Request) {
	switch i.Verb {
	case "delete":
		i.Verb = "deletecollection"
	case "get":
		i.Verb = "list"
		if wantsWatch(r) {
			i.Verb = "watch"
		}
		if mayHave(r, "fieldSelector") {
			i.Name = selectedName(r.URL.Query())
			i.Selected = i.Name != ""
		}
	}
}

func takesSelectors(verb string) bool {
	return verb == "list" || verb == "watch" || verb == "deletecollection"
}

// selectedName is the name that the field selector of a query asks for. A query that cannot be
// read asks for none.
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

// mayHave reports whether a query may have a key. Most have not, and are not read.
func mayHave(r *http.Request, key string) bool {
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		k, _, _ := strings.Cut(part, "=")
		if strings.Contains(k, key) || strings.Contains(k, "%") { // which may stand for it
			return true
		}
	}
	return false
}

func wantsWatch(r *http.Request) bool {
	if !mayHave(r, "watch") {
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
