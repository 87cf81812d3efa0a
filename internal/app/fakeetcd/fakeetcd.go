// Package fakeetcd imitates an etcd for programs that start an etcd before an API server.
//
// A fake etcd has no store: it reports that it is healthy and that it is a fake etcd. An API server that finds
// the fake etcd keeps its objects in memory. Every etcd client gets an error with this explanation. The
// package does not know API servers.
package fakeetcd

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// Version is the reported version of etcd.
const Version = "3.7.0"

// refusal is the error for requests to the etcd API.
const refusal = "this is the etcd of anykind, which stores nothing: only the kube-apiserver of anykind works with it; put a real etcd in its place, or ours in the place of kube-apiserver"

// versions is the version document of a fake etcd. A real etcd has no field storage.
type versions struct {
	Server  string `json:"etcdserver"`
	Cluster string `json:"etcdcluster"`
	Storage string `json:"storage"`
}

// inMemory is the value of the field storage.
const inMemory = "memory of anykind"

// Handler returns the handler of a fake etcd.
func Handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/health", "/livez", "/readyz"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			answer(w, map[string]string{"health": "true", "reason": ""})
		})
	}
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { answer(w, versions{Version, Version, inMemory}) })
	mux.HandleFunc("/", refuse)
	return mux
}

func answer(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document)
}

// refuse responds with the refusal, in gRPC to etcd clients, and in plain text to others.
func refuse(w http.ResponseWriter, r *http.Request) {
	const unimplemented = "12" // the gRPC status code
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", unimplemented)
		w.Header().Set("Grpc-Message", refusal)
		return
	}
	http.Error(w, refusal, http.StatusNotImplemented)
}

// Serving returns a server with the Handler, for listeners without TLS. It accepts HTTP/2, the
// protocol of etcd clients.
func Serving() *http.Server {
	s := &http.Server{Handler: Handler(), ReadHeaderTimeout: 10 * time.Second, Protocols: &http.Protocols{}}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// requestTimeout is the timeout of a request for the version document.
const requestTimeout = 5 * time.Second

// pause is the interval between attempts to connect to a server that does not listen yet.
const pause = 10 * time.Millisecond

// Is reports whether the server at a URL is a fake etcd. A server that does not respond is none: the
// client of the store reports the error. While the port is closed, Is waits, because programs start
// etcd and the API server at the same time.
func Is(ctx context.Context, server string) bool {
	return is(ctx, server, func() { time.Sleep(pause) })
}

// is calls wait after each refused connection.
func is(ctx context.Context, server string, wait func()) bool {
	if !strings.HasPrefix(server, "http://") {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server, "/")+"/version", nil)
	if err != nil {
		return false
	}
	direct := &http.Transport{DisableKeepAlives: true} // never through a proxy
	found, err := direct.RoundTrip(request)
	for errors.Is(err, syscall.ECONNREFUSED) && ctx.Err() == nil {
		wait()
		found, err = direct.RoundTrip(request)
	}
	if err != nil {
		return false
	}
	defer found.Body.Close()
	var v versions
	return json.NewDecoder(http.MaxBytesReader(nil, found.Body, 1<<16)).Decode(&v) == nil && v.Storage == inMemory
}
