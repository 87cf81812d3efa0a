package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/anykind/anykind/test/compare/generate"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

// Kinds are the resources of either server, by apiVersion and kind.
type Kinds map[string]*generate.Resource

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

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
				kinds.add(g)
			}
		}
	}
	return kinds, nil
}

func (k Kinds) add(g generate.Discovered) {
	for _, v := range g.Versions {
		for _, r := range v.Resources {
			found := &generate.Resource{Group: g.Metadata.Name, Version: v.Version, Plural: r.Resource, Kind: r.ResponseKind.Kind,
				Namespaced: r.Scope == "Namespaced", Verbs: r.Verbs,
				Custom: !builtIn(g.Metadata.Name)}
			k[found.APIVersion()+" "+found.Kind] = found
		}
	}
}

// builtIn reports whether a group is one of Kubernetes.
func builtIn(group string) bool {
	first, rest, _ := strings.Cut(group, ".")
	return rest == "" || strings.HasSuffix(group, ".k8s.io") && first != "gateway" && !strings.Contains(group, "x-k8s.io")
}

// of returns the resource of a document, nil if neither server has it.
func (k Kinds) of(d *Document) *generate.Resource { return k[d.APIVersion+" "+d.Kind] }

// namespace returns the namespace of a document with a namespaced kind.
func (d *Document) namespace() string {
	if d.Metadata.Namespace == "" {
		return "default"
	}
	return d.Metadata.Namespace
}

// created is the index of the step that creates the object.
const created = 2

// A sequence is the sequence of a document under construction.
type sequence struct {
	wire.Sequence
	resource string
}

func (s *sequence) add(kind, method, path string, body []byte, header ...string) {
	step := wire.Step{ID: len(s.Steps) + 1, Kind: kind, Resource: s.resource, Method: method, Path: path, Body: body}
	for i := 0; i < len(header); i += 2 {
		step.Header = append(step.Header, wire.Field{Name: header[i], Value: header[i+1]})
	}
	s.Steps = append(s.Steps, step)
}

// steps returns the requests for a document. Each sends the published text if possible: comments and
// variants of YAML are part of the test.
func steps(d *Document, r *generate.Resource) wire.Sequence {
	const (
		contentType = "Content-Type"
		inJSON      = "application/json"
		manager     = "fieldManager=kubectl"
	)
	s := sequence{resource: strings.TrimSuffix(r.Plural+"."+r.Group, ".")}
	collection := r.Path(d.namespace(), "")
	object := collection + "/" + d.Metadata.Name
	if d.Metadata.Name == "" {
		object = collection + "/" + wire.Refer(created, "metadata.name")
	}
	text, media := d.JSON, inJSON
	if d.Text != nil && !bytes.HasPrefix(bytes.TrimSpace(d.Text), []byte("{")) {
		text, media = d.Text, "application/yaml"
	}
	s.add("create strictly", "POST", collection+"?dryRun=All&fieldValidation=Strict&"+manager, d.JSON, contentType, inJSON)
	s.add("create", "POST", collection+"?fieldValidation=Warn&"+manager, text, contentType, media)
	if !slices.Contains(r.Verbs, "get") {
		return s.Sequence
	}
	s.add("get", "GET", object, nil)
	s.add("get row", "GET", object+"?includeObject=None", nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	patch := "application/merge-patch+json"
	if !r.Custom {
		patch = "application/strategic-merge-patch+json"
		if r.Group != "apiregistration.k8s.io" { // clients do not know its types
			s.add("get protobuf", "GET", object, nil, "Accept", "application/vnd.kubernetes.protobuf")
		}
	}
	s.add("replace", "PUT", object+"?"+manager, d.JSON, contentType, inJSON)
	s.add("patch", "PATCH", object+"?"+manager, d.JSON, contentType, patch)
	if d.Metadata.Name != "" {
		s.add("apply", "PATCH", object+"?force=true&"+manager, text, contentType, "application/apply-patch+yaml")
		s.add("apply again", "PATCH", object+"?force=true&"+manager, text, contentType, "application/apply-patch+yaml")
	}
	s.add("delete", "DELETE", object, []byte(`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"propagationPolicy":"Background"}`), contentType, inJSON)
	s.Cleanup = []wire.Step{{Method: "PATCH", Path: object, Body: []byte(`{"metadata":{"finalizers":null}}`),
		Header: []wire.Field{{Name: contentType, Value: "application/merge-patch+json"}}}}
	if s.resource == "namespaces" {
		s.Cleanup = append(s.Cleanup, wire.Step{Method: "PUT", Path: object + "/finalize",
			Body: []byte(`{"metadata":{"name":"` + d.Metadata.Name + `"},"spec":{"finalizers":[]}}`), Header: []wire.Field{{Name: contentType, Value: inJSON}}})
	}
	return s.Sequence
}
