package console

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/network/kubeconfig"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/server/console"
	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

// reference makes all tests look at a kube-apiserver.
var reference = flag.String("reference", "", "run the tests that need no anykind against kube-apiserver if it is \"start\"")

// A Fixture is a server with a console.
type Fixture struct {
	process.API      // of the administrator
	Own         bool // the server is anykind
	Console     *console.Local
	Kubeconfig  string // file
}

// Start starts a server that keeps a history, and a console for its administrator.
func Start(t *testing.T) *Fixture {
	t.Helper()
	dir := t.TempDir()
	if *reference != "" {
		return startReference(t, dir)
	}
	a, err := app.Start(t.Context(), app.Options{Dir: dir, Address: "127.0.0.1:0", Console: true, History: app.Remembering{On: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // open watches are aborted
		_ = a.Stop(ctx)
	})
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, a.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	f := Serve(t, kubeconfig.Options{Files: []string{file}})
	f.Own = true
	return f
}

// OnlyOwn skips a test that needs a server of anykind.
func OnlyOwn(t *testing.T) {
	t.Helper()
	if *reference != "" {
		t.Skip("kube-apiserver does not have it")
	}
}

// startReference starts a kube-apiserver, and a console for its administrator.
func startReference(t *testing.T, dir string) *Fixture {
	t.Helper()
	kubeAPIServer, err := program.KubeAPIServer()
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := program.Etcd()
	if err != nil {
		t.Fatal(err)
	}
	r, err := process.StartReference(t.Context(), kubeAPIServer, etcd, dir, "--disable-admission-plugins=ServiceAccount")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	return Serve(t, kubeconfig.Options{Files: []string{r.Kubeconfig}})
}

// Serve starts a console for the user of a kubeconfig.
func Serve(t *testing.T, o kubeconfig.Options) *Fixture {
	t.Helper()
	config, err := kubeconfig.Find(o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	local := console.NewLocal(listener.Addr(), o)
	local.Review = func(ctx context.Context, server *kubeconfig.Config, definition []byte, try bool) (any, error) {
		s := check.Server{Client: server.Client(), URL: server.URL}
		defer s.Client.CloseIdleConnections()
		return s.Review(ctx, definition, try)
	}
	server := &http.Server{Handler: local}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	f := &Fixture{API: process.API{Client: config.Client(), URL: config.URL}, Console: local}
	if len(o.Files) > 0 {
		f.Kubeconfig = o.Files[0]
	}
	return f
}

// Create creates objects in JSON, at their paths.
func (f *Fixture) Create(t *testing.T, path string, objects ...string) {
	t.Helper()
	for _, o := range objects {
		if err := f.create(t.Context(), path, rawJSON(o)); err != nil {
			t.Fatal(err)
		}
	}
}

// create waits for the path: kube-apiserver serves a new kind some time after its definition is created.
func (f *Fixture) create(ctx context.Context, path string, o rawJSON) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := f.Do(ctx, http.MethodPost, path, o, nil)
		var refused *process.Refused
		if !errors.As(err, &refused) || refused.Code != http.StatusNotFound {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

// Patch merges a patch into an object.
func (f *Fixture) Patch(t *testing.T, path, patch string) {
	t.Helper()
	if err := f.Do(t.Context(), http.MethodPatch, path, rawJSON(patch), nil); err != nil {
		t.Fatal(err)
	}
}

// UID returns the uid of an object.
func (f *Fixture) UID(t *testing.T, path string) string {
	t.Helper()
	var o struct{ Metadata struct{ UID string } }
	if err := f.Do(t.Context(), http.MethodGet, path, nil, &o); err != nil {
		t.Fatal(err)
	}
	return o.Metadata.UID
}

// rawJSON is encoded as it is.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// Origin returns the origin of the console.
func (f *Fixture) Origin() string {
	origin, _, _ := strings.Cut(strings.TrimPrefix(f.Console.Link(), "http://"), "/")
	return "http://" + origin
}
