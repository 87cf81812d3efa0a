// Package hostport is the conversion webhook of the Kubernetes page about versions. A CronTab has one
// field hostPort in v1beta1, and two fields host and port in v1; the webhook converts between them.
//
// It is also an admission webhook with a configurable response.
//
// It is a real HTTPS server with its own certificate. Tests can make it fail, or respond wrongly.
package hostport

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
)

// A Server is a running webhook.
type Server struct {
	// CABundle is the certificate of the server, as PEM.
	CABundle []byte

	server   *http.Server
	listener net.Listener

	mu      sync.Mutex
	failure string
	patch   map[string]any
	admits  map[string]any
	reviews int
	last    [2][]byte // request and response
}

// Start starts a webhook on a free port of this machine, with a certificate for 127.0.0.1, localhost
// and the names.
func Start(names ...string) (*Server, error) {
	certificate, bundle, err := certificateFor(append(names, "localhost"))
	if err != nil {
		return nil, err
	}
	s := &Server{CABundle: bundle, admits: map[string]any{"allowed": true}}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.server = &http.Server{Handler: s, TLSConfig: certificate, ErrorLog: log.New(io.Discard, "", 0)}
	go s.server.ServeTLS(s.listener, "", "")
	return s, nil
}

// Address is host:port of the server.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close stops the server. Later connections are refused.
func (s *Server) Close() { s.server.Close() }

// Convert makes the webhook convert, which is the default.
func (s *Server) Convert() { s.set("", nil) }

// Fail makes it respond with a failed conversion and a message.
func (s *Server) Fail(message string) { s.set(message, nil) }

// Change makes it apply a merge patch to every object after the conversion.
func (s *Server) Change(patch map[string]any) { s.set("", patch) }

// Admit makes it an admission webhook that responds with the request's uid and the given response.
func (s *Server) Admit(response map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admits = response
}

func (s *Server) set(failure string, patch map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure, s.patch = failure, patch
}

// Reviews returns the number of requests, and the last request with its response.
func (s *Server) Reviews() (n int, request, response []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reviews, s.last[0], s.last[1]
}

// A review is a request and, without the field request, a response.
type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID               string           `json:"uid"`
	DesiredAPIVersion string           `json:"desiredAPIVersion"`
	Objects           []map[string]any `json:"objects"`
}

type response struct {
	UID              string           `json:"uid"`
	Result           map[string]any   `json:"result"`
	ConvertedObjects []map[string]any `json:"convertedObjects,omitempty"`
}

// ServeHTTP responds to a ConversionReview or an AdmissionReview.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked, err := io.ReadAll(r.Body)
	var in review
	if err == nil {
		err = decode(asked, &in)
	}
	if err != nil || in.Request == nil {
		http.Error(w, "not a review with a request", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var answer any = review{APIVersion: in.APIVersion, Kind: in.Kind, Response: s.answer(in.Request)}
	if in.Kind == "AdmissionReview" {
		response := maps.Clone(s.admits)
		response["uid"] = in.Request.UID
		answer = map[string]any{"apiVersion": in.APIVersion, "kind": in.Kind, "response": response}
	}
	answered, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.reviews++
	s.last = [2][]byte{asked, answered}
	w.Header().Set("Content-Type", "application/json")
	w.Write(answered)
}

// decode decodes numbers without loss.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

func (s *Server) answer(r *request) *response {
	failure := s.failure
	for _, o := range r.Objects {
		if !convert(o, r.DesiredAPIVersion) {
			failure = "hostPort could not be parsed into a separate host and port"
		}
		merge(o, s.patch)
	}
	if failure != "" {
		return &response{UID: r.UID, Result: map[string]any{"status": "Failed", "message": failure}}
	}
	return &response{UID: r.UID, Result: map[string]any{"status": "Success"}, ConvertedObjects: r.Objects}
}

// convert converts o to another version, and reports whether it can.
func convert(o map[string]any, desired string) bool {
	if o["apiVersion"] == desired {
		return true
	}
	o["apiVersion"] = desired
	if hostPort, found := o["hostPort"].(string); found {
		host, port, ok := strings.Cut(hostPort, ":")
		o["host"], o["port"] = host, port
		delete(o, "hostPort")
		return ok
	}
	host, hasHost := o["host"].(string)
	port, hasPort := o["port"].(string)
	if hasHost || hasPort {
		o["hostPort"] = host + ":" + port
		delete(o, "host")
		delete(o, "port")
	}
	return true
}

// merge applies a merge patch to o.
func merge(o, patch map[string]any) {
	for name, v := range patch {
		inner, isObject := v.(map[string]any)
		was, wasObject := o[name].(map[string]any)
		switch {
		case v == nil:
			delete(o, name)
		case isObject && wasObject:
			merge(was, inner)
		default:
			o[name] = v
		}
	}
}
