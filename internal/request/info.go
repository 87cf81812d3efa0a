// Package request describes a request: what the client asks for, who the client is, and how
// an error is answered.
//
// The server parses a request once and puts the result into the context. Everybody who
// handles the request reads it there. The package knows the form of API paths. It does not
// know which resources exist, or who may do what.
package request

import (
	"net/http"
	"strings"
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
	subresource, _, _ := strings.Cut(i.Subresource, "/")
	switch subresource {
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

// Parse reads the line of a request.
func Parse(r *http.Request) Info {
	info := Info{Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	parts := strings.Split(strings.TrimRight(strings.TrimPrefix(r.URL.Path, "/"), "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		info.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		info.Group, info.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return info
	}
	info.IsResource = true
	watching := false
	proxied := false
	switch {
	case len(parts) == 1:
	case parts[0] == "watch":
		watching, parts = true, parts[1:]
	case parts[0] == "proxy": // of old, too, and nothing of ours is behind it
		proxied, parts = true, parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		info.Namespace = parts[1]
		// What follows the name is a resource in the namespace, or a
		// subresource of the namespace itself.
		info.OfNamespace = len(parts) == 2 || parts[2] == "status" || parts[2] == "finalize"
		if !info.OfNamespace {
			parts = parts[2:]
		}
	}
	info.Resource = parts[0]
	if len(parts) > 1 {
		info.Name = parts[1]
	}
	if len(parts) > 2 {
		info.Subresource = strings.Join(parts[2:], "/")
	}
	switch info.Verb = verb(r, &info); {
	case watching:
		info.Verb = "watch" // whatever the method is
	case proxied:
		info.Verb = "proxy"
	}
	return info
}

// verb translates the method of a request for a resource.
func verb(r *http.Request, info *Info) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if info.Name == "" {
			return "deletecollection"
		}
		return "delete"
	case http.MethodGet, http.MethodHead:
		switch {
		case info.Name == "" && wantsWatch(r):
			return "watch"
		case info.Name == "":
			return "list"
		default:
			return "get"
		}
	default:
		return "" // Kubernetes has no word for it
	}
}

func wantsWatch(r *http.Request) bool {
	if !strings.Contains(r.URL.RawQuery, "watch") {
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
