package egress

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// A hook is a server for webhooks of every kind, and a kubelet with one log.
type hook struct {
	*httptest.Server
	port  string
	asked atomic.Int64
	hangs atomic.Bool // until the caller disconnects
}

// startHook starts a hook without keep-alive.
func startHook(t *testing.T, a *authority, hosts ...string) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewUnstartedServer(h)
	h.TLS = &tls.Config{Certificates: []tls.Certificate{*a.sign(t, "hook", hosts...).TLS()}}
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.Config.SetKeepAlivesEnabled(false)
	h.StartTLS()
	t.Cleanup(h.Close)
	_, h.port, _ = net.SplitHostPort(h.Listener.Addr().String())
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked.Add(1)
	if h.hangs.Load() {
		io.Copy(io.Discard, r.Body) // the server detects a disconnect only after that
		select {
		case <-r.Context().Done():
		case <-time.After(waitTimeout):
		}
		return
	}
	if r.Method == http.MethodGet {
		io.WriteString(w, "a line of a log\n")
		return
	}
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID               string            `json:"uid"`
			DesiredAPIVersion string            `json:"desiredAPIVersion"`
			Objects           []json.RawMessage `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind}
	switch review.Kind {
	case "AdmissionReview":
		answer["response"] = map[string]any{"uid": review.Request.UID, "allowed": true}
	case "ConversionReview":
		answer["response"] = map[string]any{"uid": review.Request.UID, "result": map[string]any{"status": "Success"}, "convertedObjects": converted(review.Request.Objects, review.Request.DesiredAPIVersion)}
	case "TokenReview":
		answer["status"] = map[string]any{"authenticated": true, "user": map[string]any{"username": "behind-the-tunnel", "groups": []string{"system:masters"}}}
	}
	json.NewEncoder(w).Encode(answer)
}

func converted(objects []json.RawMessage, to string) (all []map[string]any) {
	for _, raw := range objects {
		var o map[string]any
		json.Unmarshal(raw, &o)
		o["apiVersion"] = to
		all = append(all, o)
	}
	return all
}
