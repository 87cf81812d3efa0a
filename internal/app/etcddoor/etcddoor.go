// Package etcddoor answers where etcd would, for programs that start an etcd before they start an
// API server.
//
// Behind the door is nothing: it says that it is well and what it is, and an API server that finds
// a door keeps its objects in memory. Whoever talks to it as to etcd is told so. The package does
// not know what an API server is.
package etcddoor

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// Version is that of the etcd in whose place the door is.
const Version = "3.7.0"

// refusal is what everybody else is told.
const refusal = "this is the etcd of anykind, which stores nothing: only the kube-apiserver of anykind works with it; put a real etcd in its place, or ours in the place of kube-apiserver"

// versions is the document of a door. An etcd says nothing of storage.
type versions struct {
	Server  string `json:"etcdserver"`
	Cluster string `json:"etcdcluster"`
	Storage string `json:"storage"`
}

// inMemory is what a door says of storage.
const inMemory = "memory of anykind"

// Handler answers as the door.
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

// refuse says why there is no etcd, to clients of its API, which is gRPC, and to all others.
func refuse(w http.ResponseWriter, r *http.Request) {
	const unimplemented = "12" // the code of gRPC
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", unimplemented)
		w.Header().Set("Grpc-Message", refusal)
		return
	}
	http.Error(w, refusal, http.StatusNotImplemented)
}

// Serving returns a server with the Handler, for listeners without TLS. Clients of etcd speak HTTP/2.
func Serving() *http.Server {
	s := &http.Server{Handler: Handler(), ReadHeaderTimeout: 10 * time.Second, Protocols: &http.Protocols{}}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// patience is how long a door may take to say what it is.
const patience = 5 * time.Second

// pause is how long a server is left alone that does not listen yet.
const pause = 10 * time.Millisecond

// Is reports whether the server at a URL is a door. One that does not answer is none: who connects
// to it finds out why. Where nothing listens yet, it waits: programs start etcd and the API server
// at once.
func Is(ctx context.Context, server string) bool {
	return is(ctx, server, func() { time.Sleep(pause) })
}

// is calls wait each time when nothing listens.
func is(ctx context.Context, server string, wait func()) bool {
	if !strings.HasPrefix(server, "http://") {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server, "/")+"/version", nil)
	if err != nil {
		return false
	}
	direct := &http.Transport{DisableKeepAlives: true} // and never through a proxy
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
