package webhooks

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// hooks is a server with all webhooks of both sides. The path of a request selects the webhook.
type hooks struct {
	*httptest.Server

	mu      sync.Mutex
	answers map[string]map[string][]said // by side and webhook
	reviews map[string][]review          // by side
	end     chan struct{}
}

// A review is a request to a webhook.
type review struct {
	name string
	body []byte
}

func startHooks(t *testing.T) *hooks {
	h := &hooks{answers: map[string]map[string][]said{}, reviews: map[string][]review{}, end: make(chan struct{})}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(h.serve))
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.StartTLS()
	t.Cleanup(func() { close(h.end); h.Close() })
	return h
}

func (h *hooks) url(side, name string) string { return fmt.Sprintf("%s/%s/%s", h.URL, side, name) }

func (h *hooks) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
}

// begin sets the responses of the webhooks of a side.
func (h *hooks) begin(side string, answers map[string][]said) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[side] = maps.Clone(answers)
}

// arrived returns the requests of a side since the last call, sorted by name.
func (h *hooks) arrived(side string) []review {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.reviews[side]
	delete(h.reviews, side)
	slices.SortStableFunc(all, func(a, b review) int { return cmp.Compare(a.name, b.name) })
	return all
}

// next returns the next response of a webhook.
func (h *hooks) next(side, name string) said {
	all := h.answers[side][name]
	if len(all) > 1 {
		h.answers[side][name] = all[1:]
	}
	if len(all) > 0 {
		return all[0]
	}
	return said{}
}

func (h *hooks) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	side, name, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	var asked struct {
		APIVersion, Kind string
		Request          struct{ UID string }
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	answer := h.next(side, name)
	if name != "ready.example.com" {
		h.reviews[side] = append(h.reviews[side], review{name, body})
	} else {
		answer.Response = map[string]any{"allowed": false}
	}
	h.mu.Unlock()
	switch {
	case answer.Hang:
		select {
		case <-r.Context().Done():
		case <-h.end:
		}
		return
	case answer.Code != 0:
		w.WriteHeader(answer.Code)
	}
	if answer.Body != "" {
		_, _ = io.WriteString(w, answer.Body)
		return
	}
	_ = json.NewEncoder(w).Encode(answer.review(asked.APIVersion, asked.Kind, asked.Request.UID))
}

func (s said) review(apiVersion, kind, uid string) map[string]any {
	response := map[string]any{"uid": uid, "allowed": true}
	if s.Patch != nil {
		data, err := json.Marshal(s.Patch)
		if err != nil {
			panic(err)
		}
		response["patch"], response["patchType"] = base64.StdEncoding.EncodeToString(data), "JSONPatch"
	}
	for field, v := range s.Response {
		if response[field] = v; v == nil {
			delete(response, field)
		}
	}
	review := map[string]any{"apiVersion": apiVersion, "kind": kind, "response": response}
	for field, v := range s.Review {
		if review[field] = v; v == nil {
			delete(review, field)
		}
	}
	return review
}
