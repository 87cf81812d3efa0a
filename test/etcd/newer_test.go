package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin"
)

// A newer server is a peer with a kind that no anykind knows. It has one object of that kind.
type newer struct {
	mu      sync.Mutex
	deleted string // path and user of the request that deleted the object
	created string
}

// ServeHTTP implements http.Handler.
func (n *newer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	const (
		document = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[%s]}`
		group    = `{"metadata":{"name":"far.example.com"},"versions":[{"version":"v1","resources":[{"resource":"stars",
			"responseKind":{"group":"far.example.com","version":"v1","kind":"Star"},"scope":"Namespaced","singularResource":"star","verbs":["delete","get","list"]}]}]}`
		star = `{"apiVersion":"far.example.com/v1","kind":"Star","metadata":{"name":"s","namespace":"shared","uid":"u","resourceVersion":"1"}}`
	)
	w.Header().Set("Content-Type", "application/json")
	by := r.Method + " " + r.URL.Path + " by " + r.Header.Get("X-Remote-User")
	switch {
	case r.URL.Path == "/api":
		fmt.Fprintf(w, document, "")
	case r.URL.Path == "/apis":
		fmt.Fprintf(w, document, group)
	case r.Method == http.MethodPost:
		n.created = by
		fmt.Fprint(w, star)
	case r.Method == http.MethodDelete:
		n.deleted = by
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	case strings.HasSuffix(r.URL.Path, "/stars") && n.deleted == "":
		fmt.Fprint(w, `{"kind":"StarList","apiVersion":"far.example.com/v1","metadata":{"resourceVersion":"1"},"items":[`+star+`]}`)
	default:
		fmt.Fprint(w, `{"kind":"StarList","apiVersion":"far.example.com/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	}
}

// A kind that this server does not know is served through the peer that has it. The deletion of a
// namespace deletes its objects through that peer.
func TestKindOfANewerServer(t *testing.T) {
	m, files, n := StartMember(t), newPeerFiles(t), &newer{}
	certificate := must[tls.Certificate](t)(tls.LoadX509KeyPair(files.cert, files.key))
	there := httptest.NewUnstartedServer(n)
	there.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAnyClientCert}
	there.StartTLS()
	t.Cleanup(there.Close)
	api := files.serve(t, m.Client, "a.example.com", builtin.RuntimeConfig{})

	const id = "apiserver-newer"
	client := m.client()
	defer client.Close()
	address := fmt.Sprintf(`{"kind":"Endpoints","apiVersion":"v1","metadata":{"labels":{"apiserverIdentity":%q}},"subsets":[{"addresses":[{"ip":"127.0.0.1"}],"ports":[{"port":%d}]}]}`,
		id, there.Listener.Addr().(*net.TCPAddr).Port)
	if _, err := client.Put(t.Context(), "/registry/peerserverleases/"+id, address); err != nil {
		t.Fatal(err)
	}
	lease := map[string]any{
		"metadata": map[string]any{"name": id, "labels": map[string]any{"apiserver.kubernetes.io/identity": "kube-apiserver"}},
		"spec":     map[string]any{"holderIdentity": id + "_1", "leaseDurationSeconds": 3600, "renewTime": time.Now().UTC().Format(metav1.RFC3339Micro)},
	}
	if err := api.Do(t.Context(), http.MethodPost, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", lease, nil); err != nil {
		t.Fatal(err)
	}
	if err := api.Do(t.Context(), http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "shared"}}, nil); err != nil {
		t.Fatal(err)
	}
	const stars = "/apis/far.example.com/v1/namespaces/shared/stars"
	eventually(t, func(ctx context.Context) error { return api.Do(ctx, http.MethodPost, stars, map[string]any{}, nil) })
	if err := api.Do(t.Context(), http.MethodDelete, "/api/v1/namespaces/shared", nil, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if err := api.Do(ctx, http.MethodGet, "/api/v1/namespaces/shared", nil, nil); code(err) != http.StatusNotFound {
			return fmt.Errorf("the namespace was deleted: %v", err)
		}
		return nil
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	if want := "POST " + stars + " by kubernetes-admin"; n.created != want {
		t.Errorf("%s, want %s", n.created, want)
	}
	if want := "DELETE " + stars + "/s by system:serviceaccount:kube-system:namespace-controller"; n.deleted != want {
		t.Errorf("%q, want %s", n.deleted, want)
	}
}
