package review

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// open returns a client with short pauses.
func open(t *testing.T, url string, timeout time.Duration) *Client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"clusters":[{"name":"c","cluster":{"server":"` + url + `"}}],"users":[{"name":"u","user":{"token":"ours"}}],
		"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(file, "", (&net.Dialer{}).DialContext, timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.retries.Duration = time.Millisecond
	return c
}

var kind = authenticationv1.SchemeGroupVersion.WithKind("TokenReview")

// A review is sent as the user of the kubeconfig, to its path, and the answer is decoded.
func TestPost(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"status":{"authenticated":true,"user":{"username":"eve"}}}`)
	}))
	defer server.Close()
	var out authenticationv1.TokenReview
	in := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "theirs", Audiences: []string{"a"}}}
	if err := open(t, server.URL+"/authenticate/", Timeout).Post(t.Context(), kind, in, &out); err != nil {
		t.Fatal(err)
	}
	if out.Status.User.Username != "eve" {
		t.Errorf("read %+v", out.Status)
	}
	if got.Method != "POST" || got.URL.String() != "/authenticate?timeout=30s" || got.Header.Get("Authorization") != "Bearer ours" || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("sent %s %s %v", got.Method, got.URL, got.Header)
	}
	var sent authenticationv1.TokenReview
	if err := json.Unmarshal(body, &sent); err != nil || sent.APIVersion != "authentication.k8s.io/v1" || sent.Kind != "TokenReview" || sent.Spec.Token != "theirs" {
		t.Errorf("sent %s", body)
	}
}

// Transient errors are retried up to five attempts, others are not. Errors quote the answer only
// if it is a Status.
func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []string // code, perhaps a header, body; the last repeats
		asked   int
		want    string
	}{
		{"an error inside", []string{"500||secret"}, 5, "an error on the server"},
		{"one that passes", []string{"500||", "429||", "504||", "200||{}"}, 4, ""},
		{"unavailable", []string{"503||secret"}, 1, "the server is currently unable to handle the request"},
		{"unavailable for a while", []string{"503|1|", "200||{}"}, 2, ""},
		{"not found", []string{"404||secret"}, 1, "the server could not find the requested resource"},
		{"a redirect", []string{"302||secret"}, 1, "the server responded with the status code 302"},
		{"a Status", []string{`403||{"kind":"Status","apiVersion":"v1","status":"Failure","message":"go away","reason":"Forbidden","code":403}`}, 1, "go away"},
		{"not JSON", []string{"200||secret"}, 1, "the response is not a JSON object"},
		{"another kind", []string{`200||{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1"}`}, 1,
			`the response is a "SubjectAccessReview" of "authorization.k8s.io/v1", not a TokenReview of authentication.k8s.io/v1`},
		{"another version", []string{`200||{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1"}`}, 1,
			`the response is a "TokenReview" of "authentication.k8s.io/v1beta1", not a TokenReview of authentication.k8s.io/v1`},
		{"another type", []string{`200||{"status":7}`}, 1, "the response is not a TokenReview"},
		{"too much", []string{"200||" + strings.Repeat(" ", maxReply+1)}, 1, "the response is larger than 3145728 bytes"},
		{"nothing", []string{"hang up"}, 1, "EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var times atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := strings.SplitN(tt.answers[min(int(times.Add(1)), len(tt.answers))-1], "|", 3)
				if len(answer) < 3 {
					panic(http.ErrAbortHandler)
				}
				if answer[1] != "" {
					w.Header().Set("Retry-After", answer[1])
				}
				code := map[string]int{"200": 200, "302": 302, "403": 403, "404": 404, "429": 429, "500": 500, "503": 503, "504": 504}[answer[0]]
				w.WriteHeader(code)
				_, _ = io.WriteString(w, answer[2])
			}))
			defer server.Close()
			var out authenticationv1.TokenReview
			err := open(t, server.URL, Timeout).Post(t.Context(), kind, &authenticationv1.TokenReview{}, &out)
			asked := int(times.Load())
			if asked != tt.asked || (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("asked %d times: %v; want %d times: %s", asked, err, tt.asked, tt.want)
			}
		})
	}
}

// A request to a server that hangs ends at the timeout.
func TestSlow(t *testing.T) {
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-done:
		}
	}))
	defer server.Close()
	defer close(done)
	var out authenticationv1.TokenReview
	err := open(t, server.URL, 50*time.Millisecond).Post(t.Context(), kind, &authenticationv1.TokenReview{}, &out)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
