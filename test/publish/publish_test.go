// Package publish compares the discovery documents, legacy and aggregated, and the OpenAPI v2 and v3
// documents of anykind and a kube-apiserver, with their headers.
package publish

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind"
	"github.com/anykind/anykind/test/corpus"
	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

var reference = flag.String("reference", "", "compare with the server of this `kubeconfig`; \"start\" builds and starts a kube-apiserver")

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func TestPublished(t *testing.T) {
	if *reference == "" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	c := &comparison{theirs: theirs(t), ours: ours(t)}
	definitions, err := corpus.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		group, _ := d["spec"].(map[string]any)["group"].(string)
		if !slices.Contains(c.groups, group) {
			c.groups = append(c.groups, group)
		}
		for _, s := range []*server{c.theirs, c.ours} {
			s.create(t, d)
		}
	}
	c.theirs.awaitStable(t)
	t.Logf("%d definitions in %d groups", len(definitions), len(c.groups))
	c.run(t)
}

// Published definitions are accepted and served, with their schemas.
func TestDefinitionsAreServed(t *testing.T) {
	all, err := corpus.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	standard, err := corpus.GatewayAPIStandard.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		definitions []map[string]any
	}{{"all", all}, {"standard", standard}} {
		t.Run(c.name, func(t *testing.T) {
			s := ours(t)
			for _, d := range c.definitions {
				s.create(t, d)
			}
			for _, d := range c.definitions {
				s.serves(t, d)
			}
		})
	}
}

// serves fails unless each served version of a definition has a list of objects and a model.
func (s *server) serves(t *testing.T, definition map[string]any) {
	t.Helper()
	spec := definition["spec"].(map[string]any)
	names := spec["names"].(map[string]any)
	for _, v := range spec["versions"].([]any) {
		version := v.(map[string]any)
		if version["served"] != true {
			continue
		}
		path := fmt.Sprintf("/apis/%s/%s", spec["group"], version["name"])
		var list struct{ Kind string }
		if err := s.Do(t.Context(), "GET", path+"/"+names["plural"].(string), nil, &list); err != nil || list.Kind != fmt.Sprint(names["listKind"]) {
			t.Errorf("%s has %q of %s, %v", path, list.Kind, names["plural"], err)
		}
		var document struct {
			Components struct {
				Schemas map[string]struct{ Properties map[string]any }
			}
		}
		if err := s.Do(t.Context(), "GET", "/openapi/v3"+path, nil, &document); err != nil {
			t.Error(err)
		}
		found := false
		for name, model := range document.Components.Schemas {
			found = found || strings.HasSuffix(name, "."+names["kind"].(string)) && len(model.Properties) > 0
		}
		if !found {
			t.Errorf("/openapi/v3%s has no model of %s", path, names["kind"])
		}
	}
}

// A server is one of the two.
type server struct{ process.API }

func open(t *testing.T, kubeconfig string) *server {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	// A redirect is a response to compare, too.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(client.CloseIdleConnections)
	return &server{process.API{Client: client, URL: strings.TrimSuffix(config.Host, "/")}}
}

func ours(t *testing.T) *server {
	t.Helper()
	s, err := anykind.Start(t.Context(), anykind.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, s.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, file)
}

func theirs(t *testing.T, flags ...string) *server {
	t.Helper()
	if *reference != "start" {
		return open(t, *reference)
	}
	kubeAPIServer, err := program.KubeAPIServer()
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := program.Etcd()
	if err != nil {
		t.Fatal(err)
	}
	r, err := process.StartReference(context.WithoutCancel(t.Context()), kubeAPIServer, etcd, t.TempDir(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	return open(t, r.Kubeconfig)
}

func (s *server) create(t *testing.T, definition map[string]any) {
	t.Helper()
	err := s.Do(t.Context(), "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition, nil)
	var refused *process.Refused
	if err != nil && !(errors.As(err, &refused) && refused.Code == http.StatusConflict) {
		t.Fatal(err)
	}
}

// awaitStable waits until the documents of a server have not changed for some seconds: kube-apiserver
// publishes a definition some time after its creation.
func (s *server) awaitStable(t *testing.T) {
	t.Helper()
	const still, enough = 10 * time.Second, 5 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	var last string
	for since := time.Now(); time.Since(since) < still; {
		tags := s.get(t, "/openapi/v2", "").header.Get("ETag") + s.get(t, "/openapi/v3", "").text() + s.get(t, "/apis", aggregated).header.Get("ETag")
		if tags != last {
			last, since = tags, time.Now()
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal("it changes all the time")
		}
	}
}
