package rest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/memkv"
)

// A teller answers with its options.
type teller struct{}

func (teller) Connect(_ context.Context, c resource.Connection) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "%s %s%s", c.Method, c.Options.(*metav1.GetOptions).ResourceVersion, c.Path)
	}), nil
}

// readOptions reads a version from the query or from the path below.
func readOptions(query url.Values) (runtime.Object, error) {
	version := query.Get("version")
	if version == "bad" {
		return nil, errors.New("a bad version")
	}
	return &metav1.GetOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "GetOptions"}, ResourceVersion: version + query.Get("path")}, nil
}

// connections is an admission plugin that rejects version 0.
type connections struct{ seen []string }

func (c *connections) Validate(_ context.Context, a *registry.Admission) error {
	if a.Operation != registry.Connect {
		return nil
	}
	c.seen = append(c.seen, fmt.Sprint(a.Target.Subresource, " ", a.Object["kind"], " ", a.Object["resourceVersion"]))
	if a.Object["resourceVersion"] == "0" {
		return errors.New("not that one")
	}
	return nil
}

// Mutate replaces version 3.
func (c *connections) Mutate(_ context.Context, a *registry.Admission) error {
	if a.Operation == registry.Connect && a.Object["resourceVersion"] == "3" {
		a.Object["resourceVersion"], a.Changed = "changed", true
	}
	return nil
}

// Options are read before admission; admission sees them and may change them; a read skips
// admission.
func TestConnectionOptions(t *testing.T) {
	d := lead()
	d.Versions[0].Subresources = append(d.Versions[0].Subresources,
		resource.Subresource{Name: "talk", Verbs: []string{"create", "get"}, Connecter: teller{}, ReadOptions: readOptions},
		resource.Subresource{Name: "log", Verbs: []string{"get"}, Connecter: teller{}, ReadOptions: readOptions, Reads: true},
		resource.Subresource{Name: "proxy", Verbs: []string{"get"}, Connecter: teller{}, ReadOptions: readOptions, PathsBelow: true})
	asked := &connections{}
	s := newServerWith(t, memkv.New(memkv.Options{}), registry.Options{Plugins: registry.Plugins{Mutators: []registry.Mutator{asked}, Validators: []registry.Validator{asked}}}, d)
	s.get(leads+"/a/talk?version=1").is(200, "GET 1")
	s.get(leads+"/a/talk?version=0").message(500, "not that one")
	s.get(leads+"/a/talk?version=3").is(200, "GET changed")
	s.get(leads+"/a/talk?version=bad").message(400, "a bad version")
	s.get(leads+"/a/talk?dryRun=All").message(400, "dryRun is not supported")
	s.get(leads+"/a/log?version=0&dryRun=All").is(200, "GET 0")
	s.get(leads+"/a/proxy/x/y?version=2&path=z").is(200, "GET 2/x/y/x/y")
	s.do("OPTIONS", leads+"/a/proxy", "", "").is(200, "OPTIONS ")
	s.do("OPTIONS", leads+"/a/talk", "", "").is(405, "MethodNotAllowed")
	if got, want := fmt.Sprint(asked.seen), "[talk GetOptions 1 talk GetOptions 0 talk GetOptions changed proxy GetOptions 2/x/y proxy GetOptions <nil>]"; got != want {
		t.Errorf("admission has seen %s", got)
	}
}
