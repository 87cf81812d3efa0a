package anykind_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/clientcmd/api/latest"

	"github.com/anykind/anykind"
)

func Example() {
	srv, err := anykind.Start(context.Background(), anykind.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	// A client needs only the kubeconfig:
	//
	//	config, err := clientcmd.RESTConfigFromKubeConfig(srv.Kubeconfig())
	//
	// A health check needs only the CA.
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(srv.CA())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(srv.URL() + "/readyz")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	fmt.Println(string(body))
	// Output: ok
}

// administrator returns a client with the credentials of the kubeconfig, and the URL of its cluster.
func administrator(t *testing.T, kubeconfig []byte) (*http.Client, string) {
	t.Helper()
	config, err := apiruntime.Decode(latest.Codec, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c := config.(*api.Config)
	here := c.Contexts[c.CurrentContext]
	user, cluster := c.AuthInfos[here.AuthInfo], c.Clusters[here.Cluster]
	pair, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cluster.CertificateAuthorityData)
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, cluster.Server
}

func do(t *testing.T, c *http.Client, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(data)
}

const widgets = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": {"name": "widgets.example.com"},
	"spec": {"group": "example.com", "scope": "Namespaced",
		"names": {"plural": "widgets", "kind": "Widget"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
			"type": "object", "properties": {"size": {"type": "integer"}}}}}]}}`

// define creates a definition and an object of its kind, and opens a watch that stays open.
func define(t *testing.T, srv *anykind.Server, name string) {
	t.Helper()
	c, url := administrator(t, srv.Kubeconfig())
	if url != srv.URL() {
		t.Errorf("the kubeconfig says %s, the server %s", url, srv.URL())
	}
	if code, body := do(t, c, "POST", url+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets); code != 201 {
		t.Fatalf("create a definition: %d %s", code, body)
	}
	object := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"` + name + `"},"size":1}`
	if code, body := do(t, c, "POST", url+"/apis/example.com/v1/namespaces/default/widgets", object); code != 201 {
		t.Fatalf("create an object: %d %s", code, body)
	}
	watch, err := c.Get(url + "/apis/example.com/v1/widgets?watch=true")
	if err != nil || watch.StatusCode != 200 {
		t.Fatalf("watch: %v %v", watch, err)
	}
	t.Cleanup(func() { watch.Body.Close() })
}

// Servers in one process are independent, and leave no goroutine.
func TestSideBySide(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("five", func(t *testing.T) {
		servers := make([]*anykind.Server, 5)
		var group sync.WaitGroup
		for i := range servers {
			group.Go(func() {
				srv, err := anykind.Start(t.Context(), anykind.Options{})
				if err != nil {
					t.Error(err)
					return
				}
				servers[i] = srv
			})
		}
		group.Wait()
		if t.Failed() {
			return
		}
		for i, srv := range servers {
			define(t, srv, fmt.Sprintf("of-%d", i))
		}
		for i, srv := range servers {
			c, url := administrator(t, srv.Kubeconfig())
			code, body := do(t, c, "GET", url+"/apis/example.com/v1/widgets", "")
			if code != 200 || strings.Count(body, `"name":"of-`) != 1 || !strings.Contains(body, fmt.Sprintf(`"name":"of-%d"`, i)) {
				t.Errorf("server %d has %d %s", i, code, body)
			}
			if _, other := administrator(t, servers[(i+1)%5].Kubeconfig()); other == url {
				t.Errorf("two servers at %s", url)
			}
			if err := srv.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if _, err := net.Dial("tcp", strings.TrimPrefix(url, "https://")); err == nil {
				t.Error("it is still there")
			}
			if err := srv.Stop(context.Background()); err != nil {
				t.Errorf("Stop after Close: %v", err)
			}
		}
	})
	deadline, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for runtime.NumGoroutine() > before {
		if deadline.Err() != nil {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
		runtime.Gosched()
	}
}

// A server with a directory has the objects of the previous one.
func TestDirectory(t *testing.T) {
	o := anykind.Options{Dir: filepath.Join(t.TempDir(), "data")}
	srv, err := anykind.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	define(t, srv, "kept")
	if _, err := anykind.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second server on the directory: %v", err)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}

	again, err := anykind.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	c, url := administrator(t, again.Kubeconfig())
	if code, body := do(t, c, "GET", url+"/apis/example.com/v1/namespaces/default/widgets/kept", ""); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	if string(again.CA()) != string(srv.CA()) {
		t.Error("clients of the first server do not trust the second")
	}
}

// Stop aborts the remaining requests when its context ends.
func TestStopHasALimit(t *testing.T) {
	srv, err := anykind.Start(t.Context(), anykind.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, url := administrator(t, srv.Kubeconfig())
	body, rest := io.Pipe()
	defer rest.Close()
	failed := make(chan error, 1)
	go func() {
		_, err := c.Post(url+"/api/v1/namespaces/default/configmaps", "application/json", body)
		failed <- err
	}()
	if _, err := io.WriteString(rest, "{"); err != nil {
		t.Fatal(err)
	}
	for {
		if _, metrics := do(t, c, "GET", url+"/metrics", ""); strings.Contains(metrics, `inflight_requests{request_kind="mutating"} 1`) {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := srv.Stop(ctx); err == nil {
		t.Error("Stop did not say that it cut something off")
	}
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		srv, err := anykind.Start(b.Context(), anykind.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := srv.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// RuntimeConfig enables and disables versions, as --runtime-config does.
func TestRuntimeConfig(t *testing.T) {
	srv, err := anykind.Start(t.Context(), anykind.Options{
		RuntimeConfig: map[string]string{"coordination.k8s.io/v1beta1": "true", "batch/v1": "false"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	c, url := administrator(t, srv.Kubeconfig())
	for path, want := range map[string]int{
		"/apis/coordination.k8s.io/v1beta1/leasecandidates": http.StatusOK,
		"/apis/batch/v1/jobs":                               http.StatusNotFound,
	} {
		if code, body := do(t, c, http.MethodGet, url+path, ""); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if _, err := anykind.Start(t.Context(), anykind.Options{RuntimeConfig: map[string]string{"batch/v9": "true"}}); err == nil {
		t.Error("it starts with a version that is none")
	}
}
