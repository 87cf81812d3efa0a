package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/anykind/anykind/test/compare/generate"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

// Kinds are the resources that either server has, by apiVersion and kind.
type Kinds map[Object]*generate.Resource

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discover returns what either serves.
func discover(ctx context.Context, p *servers.Pair) (Kinds, error) {
	kinds := Kinds{}
	for _, c := range []*wire.Client{p.Theirs, p.Ours} {
		for _, path := range []string{"/api", "/apis"} {
			a := c.Do(ctx, wire.Step{Method: "GET", Path: path, Header: []wire.Field{{Name: "Accept", Value: aggregated}}})
			var list struct{ Items []generate.Discovered }
			if err := json.Unmarshal(a.Body, &list); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", c.Host(), path, err)
			}
			for _, g := range list.Items {
				for _, v := range g.Versions {
					for _, r := range v.Resources {
						found := &generate.Resource{Group: g.Metadata.Name, Version: v.Version, Plural: r.Resource,
							Kind: r.ResponseKind.Kind, Namespaced: r.Scope == "Namespaced", Verbs: r.Verbs}
						kinds[Object{APIVersion: found.APIVersion(), Kind: found.Kind}] = found
					}
				}
			}
		}
	}
	return kinds, nil
}

// of returns the resource of a document, nil if neither server has it.
func (k Kinds) of(d *Document) *generate.Resource {
	return k[Object{APIVersion: d.APIVersion, Kind: d.Kind}]
}

// namespace is where a document goes.
func (d *Document) namespace() string {
	if d.Metadata.Namespace == "" {
		return "default"
	}
	return d.Metadata.Namespace
}

// custom reports whether a resource has no protobuf.
func custom(r *generate.Resource) bool {
	return strings.Contains(r.Group, ".") && !strings.HasSuffix(r.Group, ".k8s.io") || strings.HasPrefix(r.Group, "gateway.")
}

const (
	created = 1 // the step that creates the object
	manager = "fieldManager=kubectl"
)

// steps are what is asked about a document.
func steps(d *Document, r *generate.Resource) wire.Sequence {
	var s wire.Sequence
	collection := r.Path(d.namespace(), "")
	object := collection + "/" + d.Metadata.Name
	if d.Metadata.Name == "" {
		object = collection + "/" + wire.Refer(created, "metadata.name")
	}
	add := func(kind, method, path string, body []byte, header ...wire.Field) {
		s.Steps = append(s.Steps, wire.Step{ID: len(s.Steps), Kind: kind, Resource: r.Plural + "." + r.Group, Method: method, Path: path, Body: body, Header: header})
	}
	json, accept := wire.Field{Name: "Content-Type", Value: "application/json"}, "Accept"
	add("try", "POST", collection+"?dryRun=All&fieldValidation=Strict&"+manager, d.JSON, json)
	text, media := d.JSON, json
	if d.Text != nil && !bytes.HasPrefix(bytes.TrimSpace(d.Text), []byte("{")) {
		text, media = d.Text, wire.Field{Name: "Content-Type", Value: "application/yaml"}
	}
	add("create", "POST", collection+"?fieldValidation=Warn&"+manager, text, media)
	if !slices.Contains(r.Verbs, "get") {
		return s
	}
	add("get", "GET", object, nil)
	add("get a row", "GET", object+"?includeObject=None", nil, wire.Field{Name: accept, Value: "application/json;as=Table;v=v1;g=meta.k8s.io"})
	if !custom(r) {
		add("get protobuf", "GET", object, nil, wire.Field{Name: accept, Value: "application/vnd.kubernetes.protobuf"})
	}
	apply := wire.Field{Name: "Content-Type", Value: "application/apply-patch+yaml"}
	if d.Metadata.Name != "" {
		for _, kind := range []string{"apply", "apply again"} {
			add(kind, "PATCH", object+"?force=true&"+manager, text, apply)
		}
	}
	add("delete", "DELETE", object, []byte(`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"propagationPolicy":"Background"}`), json)
	s.Cleanup = []wire.Step{
		{Method: "PATCH", Path: object, Body: []byte(`{"metadata":{"finalizers":null}}`), Header: []wire.Field{{Name: "Content-Type", Value: "application/merge-patch+json"}}},
		{Method: "PUT", Path: object + "/finalize", Body: []byte(`{"metadata":{"name":"` + d.Metadata.Name + `"},"spec":{"finalizers":[]}}`), Header: []wire.Field{json}},
	}
	if r.Plural != "namespaces" {
		s.Cleanup = s.Cleanup[:1]
	}
	return s
}


// ensure creates objects that examples need, on both servers.
func ensure(ctx context.Context, p *servers.Pair, path string, body []byte) error {
	for _, c := range []*wire.Client{p.Theirs, p.Ours} {
		a := c.Do(ctx, wire.Step{Method: "POST", Path: path, Header: []wire.Field{{Name: "Content-Type", Value: "application/json"}}, Body: body})
		if a.Code != http.StatusCreated && a.Code != http.StatusConflict {
			return fmt.Errorf("%s: POST %s: %d %s %s", c.Host(), path, a.Code, a.Failed, a.Body)
		}
	}
	return nil
}
