// Package publish compares what anykind and a kube-apiserver tell clients of what
// they serve: discovery, legacy and aggregated, and OpenAPI v2 and v3, with the
// headers around them.
package publish

import (
	"context"
	"errors"
	"flag"
	"io/fs"
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

var reference = flag.String("reference", "", "compare with the server of this `kubeconfig`, or with one that is started if it is \"start\"")

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func TestPublished(t *testing.T) {
	if *reference == "" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	c := &comparison{theirs: theirs(t), ours: ours(t)}
	definitions, err := corpus.Definitions("../../../shared/corpus", corpus.Small...)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no corpus here")
	}
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
	c.theirs.settle(t)
	t.Logf("%d definitions in %d groups", len(definitions), len(c.groups))
	c.run(t)
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
	// A redirect is an answer to compare, too.
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

func theirs(t *testing.T) *server {
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
	r, err := process.StartReference(context.WithoutCancel(t.Context()), kubeAPIServer, etcd, t.TempDir())
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

// settle returns when what a server publishes has not changed for some seconds:
// kube-apiserver publishes a definition some time after it took it.
func (s *server) settle(t *testing.T) {
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
