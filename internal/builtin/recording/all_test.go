package recording_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/anykind/anykind/internal/builtin/recording"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/server/discovery"
	"github.com/anykind/anykind/internal/server/openapi"
)

// Definitions with only the names in the recording, the Go types and the table of types serve
// discovery, operations and types as recorded: these follow from the names and types.
func TestAllKinds(t *testing.T) {
	theirs := recorded(t, "kinds.txt")
	ours, err := recording.Record(asking(catalog(allKinds(t, theirs))), func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	due := func(subject string) bool {
		// Types of CustomResourceDefinitions have a table of their own.
		return ours["types.txt"].Has(subject) && !strings.HasPrefix(subject, "apiextensions.")
	}
	for _, line := range recording.Differences(recorded(t, "types.txt").Only(due), ours["types.txt"].Only(due)) {
		t.Error(line)
	}
	for _, b := range theirs {
		if _, known := types()[groupOf(b.Subject)]; !known && !ours["kinds.txt"].Has(b.Subject) {
			continue // its Go types are elsewhere
		}
		for _, mine := range ours["kinds.txt"] {
			if mine.Subject != b.Subject {
				continue
			}
			for _, line := range recording.Differences(recording.Recording{told(b)}, recording.Recording{told(mine)}) {
				t.Error(line)
			}
		}
		if !ours["kinds.txt"].Has(b.Subject) {
			t.Errorf("%s is not there", b.Subject)
		}
	}
}

// The protobuf documents also have the additional methods of connections.
func TestConnectionsInProtobuf(t *testing.T) {
	ask := asking(catalog(allKinds(t, recorded(t, "kinds.txt"))))
	const path, head, options = "/api/v1/nodes/{name}/proxy/{path}", "connectCoreV1HeadNodeProxyWithPath", "connectCoreV1OptionsNodeProxyWithPath"
	_, body, _ := ask("GET", "/openapi/v3/api/v1", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", "")
	var v3 openapiv3.Document
	if err := proto.Unmarshal(body, &v3); err != nil {
		t.Fatal(err)
	}
	for _, p := range v3.Paths.Path {
		if p.Name == path && (p.Value.Head.OperationId != head || p.Value.Options.OperationId != options) {
			t.Errorf("v3 has %v", p.Value)
		}
	}
	_, body, _ = ask("GET", "/openapi/v2", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", "")
	var v2 openapiv2.Document
	if err := proto.Unmarshal(body, &v2); err != nil {
		t.Fatal(err)
	}
	for _, p := range v2.Paths.Path {
		if p.Name == path && (p.Value.Head.OperationId != head || p.Value.Options.OperationId != options) {
			t.Errorf("v2 has %v", p.Value)
		}
	}
	if len(v3.Paths.Path) == 0 || len(v2.Paths.Path) == 0 {
		t.Error("there are no paths")
	}
}

// told returns the part of a block that follows from names and Go types.
func told(b *recording.Block) *recording.Block {
	facts := slices.DeleteFunc(slices.Clone(b.Facts), func(f string) bool {
		return strings.HasPrefix(f, "column ") || strings.HasPrefix(f, "fields ") || strings.HasPrefix(f, "storage ") || strings.HasPrefix(f, "put ")
	})
	return &recording.Block{Subject: b.Subject, Facts: facts, Operations: b.Operations}
}

func recorded(t testing.TB, name string) recording.Recording {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", "recorded", name))
	if err != nil {
		t.Fatal(err)
	}
	r, err := recording.Read(string(data), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// types returns the Go types by group.
func types() map[string]*runtime.Scheme {
	out := map[string]*runtime.Scheme{apiextensionsv1.GroupName: runtime.NewScheme()}
	_ = apiextensionsv1.AddToScheme(out[apiextensionsv1.GroupName])
	for kind := range scheme.Scheme.AllKnownTypes() {
		out[kind.Group] = scheme.Scheme
	}
	return out
}

func groupOf(subject string) string {
	gv, _, _ := strings.Cut(subject, " ")
	parsed, _ := gvk.ParseGroupVersion(gv)
	return parsed.Group
}

// allKinds returns Definitions for the recorded kinds.
func allKinds(t testing.TB, r recording.Recording) []*resource.Definition {
	t.Helper()
	all := types()
	made := map[gvk.GroupResource]*resource.Definition{}
	var out []*resource.Definition
	for i, b := range r {
		gv, name, _ := strings.Cut(b.Subject, " ")
		parsed, _ := gvk.ParseGroupVersion(gv)
		types := all[parsed.Group]
		if types == nil {
			continue
		}
		words := strings.Fields(b.Facts[0])
		said := map[string][]string{}
		for _, w := range words {
			name, value, _ := strings.Cut(w, "=")
			if value != "" {
				said[name] = strings.Split(value, ",")
			}
		}
		verbs := said["verbs"]
		if slices.Equal(verbs, []string{"all"}) {
			verbs = resource.AllVerbs
		}
		plural, sub, _ := strings.Cut(name, "/")
		gr := gvk.GroupResource{Group: parsed.Group, Resource: plural}
		if sub != "" {
			v := made[gr].Version(parsed.Version)
			v.Subresources = append(v.Subresources, subresource(t, all, made[gr], v, sub, words, verbs))
			continue
		}
		if made[gr] == nil {
			made[gr] = resource.New(resource.Definition{
				Group: gr.Group, Plural: plural, Singular: said["singular"][0], Kind: words[0], ListKind: words[0] + "List",
				ShortNames: said["short"], Categories: said["categories"], Namespaced: slices.Contains(words, "namespaced"), Verbs: verbs,
				GroupPriority: len(r) - i, Dialect: resource.CompiledIn,
				ReturnsDeleted: slices.ContainsFunc(b.Operations, func(o string) bool {
					return strings.Contains(o, "} delete: ") && strings.Contains(o, " 200,202 KIND ")
				}),
			})
			out = append(out, made[gr])
		}
		v := version(t, types, parsed.WithKind(words[0]), plural)
		v.Storage = len(made[gr].Versions) == 0
		made[gr].Versions = append(made[gr].Versions, v)
	}
	return out
}

// version returns the version of a kind with its Go type.
func version(t testing.TB, types *runtime.Scheme, kind gvk.GroupVersionKind, plural string) *resource.Version {
	t.Helper()
	obj, err := types.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	o := model.TypeOptions{Kind: model.Kind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, ListKind: kind.Kind + "List", Plural: plural}, Marks: rule.Marks}
	if list, err := types.New(kind.GroupVersion().WithKind(kind.Kind + "List")); err == nil {
		o.List = reflect.TypeOf(list).Elem()
	}
	return &resource.Version{Name: kind.Version, Served: true, Schema: schema.FromType(reflect.TypeOf(obj).Elem(), o)}
}

func subresource(t testing.TB, all map[string]*runtime.Scheme, d *resource.Definition, v *resource.Version, name string, words, verbs []string) resource.Subresource {
	t.Helper()
	s := resource.Subresource{Name: name, Verbs: verbs}
	kind := gvk.GroupVersionKind{Group: d.Group, Version: v.Name, Kind: words[0]}
	if gv, err := gvk.ParseGroupVersion(words[0]); err == nil && strings.Contains(words[0], "/") {
		kind = gv.WithKind(words[1])
	} else if kind.Kind != d.Kind {
		s.Kind = gvk.GroupVersionKind{Kind: kind.Kind}
	}
	switch {
	case strings.HasSuffix(kind.Kind, "Options"):
		options, err := all[kind.Group].New(kind)
		if err != nil {
			t.Fatal(err)
		}
		s.Kind, s.Connecter, s.PathsBelow = kind, unreachable{}, name == "proxy"
		s.Options = reflect.ValueOf(options).Elem().Interface().(resource.Options)
	case name == "log":
		s.Connecter, s.Options = unreachable{}, corev1.PodLogOptions{}
	case kind.Kind != d.Kind:
		body := version(t, all[kind.Group], kind, "")
		body.Storage = true
		s.Kind, s.Definition = kind, resource.New(resource.Definition{Group: kind.Group, Kind: kind.Kind, Versions: []*resource.Version{body}})
	}
	return s
}

// unreachable is a Connecter without a target.
type unreachable struct{}

func (unreachable) Connect(context.Context, resource.Connection) (http.Handler, error) {
	return nil, fmt.Errorf("no target")
}

func catalog(definitions []*resource.Definition) *resource.Catalog {
	c := &resource.Catalog{}
	c.Swap(resource.NewSet(definitions))
	return c
}

// asking returns a server for the published documents of a catalog. All other responses are empty
// objects.
func asking(c *resource.Catalog) recording.Server {
	found, documents := discovery.New(c, discovery.Options{}), openapi.New(c, openapi.Options{})
	return func(method, path, accept, body string) (int, []byte, error) {
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Accept", accept)
		switch {
		case found.Handles(r.URL.Path):
			found.ServeHTTP(w, r)
		case documents.Handles(r.URL.Path):
			documents.ServeHTTP(w, r)
		default:
			w.WriteString("{}")
		}
		return w.Code, w.Body.Bytes(), nil
	}
}
