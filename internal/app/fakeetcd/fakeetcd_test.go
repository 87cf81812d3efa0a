package fakeetcd

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// open starts a fake etcd.
func open(t *testing.T) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Serving()
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return "http://" + l.Addr().String()
}

func TestPaths(t *testing.T) {
	fake := open(t)
	for path, want := range map[string]string{
		"/health":  `200 {"health":"true","reason":""}`,
		"/readyz":  `200 {"health":"true","reason":""}`,
		"/version": `200 {"etcdserver":"` + Version + `","etcdcluster":"` + Version + `","storage":"memory of anykind"}`,
		"/v3/kv":   "501 " + refusal,
		"/":        "501 " + refusal,
	} {
		r, err := http.Get(fake + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if got := r.Status[:4] + strings.TrimSpace(string(body)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// An etcd client, such as that of another kube-apiserver, gets the explanation as its error.
func TestClientOfEtcd(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{open(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Get(t.Context(), "/registry"); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("%v, want it to say %q", err, refusal)
	}
}

func TestIs(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"etcdserver":"3.7.0","etcdcluster":"3.7.0"}`)
	}))
	defer other.Close()
	fake := open(t)
	for url, want := range map[string]bool{fake: true, fake + "/": true, other.URL: false, "https" + fake[4:]: false, "": false} {
		if got := Is(t.Context(), url); got != want {
			t.Errorf("%s: %t", url, got)
		}
	}
}

// A fake etcd that starts during the wait is found. A port that stays closed is not a fake etcd.
func TestIsThereLater(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	s := Serving()
	defer s.Close()
	waited := 0
	found := is(t.Context(), "http://"+address, func() {
		if waited++; waited > 1 {
			return
		}
		if l, err = net.Listen("tcp", address); err != nil {
			t.Error(err)
			return
		}
		go s.Serve(l)
	})
	if !found || waited == 0 {
		t.Errorf("found: %t, after waiting %d times", found, waited)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if is(ctx, "http://127.0.0.1:1", cancel) {
		t.Error("nothing is a fake etcd")
	}
}
