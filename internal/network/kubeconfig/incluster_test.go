package kubeconfig

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program in a pod authenticates as its ServiceAccount, with the current token.
func TestInCluster(t *testing.T) {
	var said string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { said = r.Header.Get("Authorization") }))
	defer server.Close()
	host, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	folder := t.TempDir()
	if _, _, err := inCluster(folder); err == nil {
		t.Error("there is no token, and it is in a cluster")
	}
	put := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	put("token", []byte("first\n"))
	c, u, err := inCluster(folder)
	if err != nil {
		t.Fatal(err)
	}
	config, err := newConfig(&c, &u)
	if err != nil {
		t.Fatal(err)
	}
	client := config.Client()
	for _, token := range []string{"first", "second"} {
		put("token", []byte(token))
		response, err := client.Get(config.URL)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if said != "Bearer "+token {
			t.Errorf("it said %q, want %s", said, token)
		}
	}
	client.CloseIdleConnections()
}

func TestNotInCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Open(InCluster); err == nil || !strings.Contains(err.Error(), "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined") {
		t.Error(err)
	}
}

// The in-cluster configuration applies only if no other is named: an incomplete file is an error.
func TestEmpty(t *testing.T) {
	some := map[string]cluster{"here": {}}
	for _, tt := range []struct {
		name string
		k    known
		o    Options
		want bool
	}{
		{"nothing", known{}, Options{Token: "t"}, true},
		{"a file that was asked for", known{}, Options{Files: []string{"file"}}, false},
		{"a cluster without a server", known{clusters: some}, Options{}, false},
		{"a context that is not there", known{current: "gone"}, Options{}, false},
		{"a server", known{}, Options{Server: "https://127.0.0.1:1"}, false},
	} {
		if got := tt.k.empty(&tt.o); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
