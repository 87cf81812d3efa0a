package outcome

import (
	"encoding/json"
	"net/http"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

const (
	defaultLimit = 100
	maxLimit     = 2 * size
)

// A Page serves the outcomes of a Log to users that may read the objects.
type Page struct {
	Log        *Log
	Catalog    *resource.Catalog
	Authorizer authz.Authorizer
}

// A list is the response of the page.
type list struct {
	Kind       string    `json:"kind"`
	APIVersion string    `json:"apiVersion"`
	Items      []Outcome `json:"items"`
}

// ServeHTTP answers with the last outcomes for the objects of a resource, the newest first.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !request.Allows(w, r, http.MethodGet) {
		return
	}
	items, err := p.items(r)
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list{Kind: "OutcomeList", APIVersion: "admission.anykind.dev/v1", Items: items})
}

func (p *Page) items(r *http.Request) ([]Outcome, error) {
	query := r.URL.Query()
	limit, err := request.Limit(query, defaultLimit, maxLimit)
	if err != nil {
		return nil, err
	}
	group, plural := query.Get("group"), query.Get("resource")
	if plural == "" {
		return nil, status.BadRequest("resource: Required value: for example ?group=apps&resource=deployments")
	}
	d := p.Catalog.Set().Lookup(group, plural)
	if d == nil || !d.Served() {
		return nil, status.BadRequest("resource: Invalid value: %q: the server has no such resource in the group %q", plural, group)
	}
	namespace, name := query.Get("namespace"), query.Get("name")
	switch {
	case namespace != "" && !d.Namespaced:
		return nil, status.BadRequest("namespace: Invalid value: %q: %s have no namespace", namespace, plural)
	case namespace == "" && d.Namespaced && name != "":
		return nil, status.BadRequest("namespace: Required value: the namespace of %s %q", plural, name)
	}
	verb := "get"
	if name == "" {
		verb = "list"
	}
	if err := authz.Check(r.Context(), p.Authorizer, &authz.Attributes{User: request.UserFrom(r.Context()), Info: request.Info{
		IsResource: true, Verb: verb, Group: group, Version: d.FirstServed().Name, Resource: plural, Namespace: namespace, Name: name,
	}}); err != nil {
		return nil, err
	}
	return p.Log.Last(d.GroupResource(), namespace, name, limit), nil
}
