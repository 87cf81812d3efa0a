package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/anykind/anykind/internal/access/audit"
)

// fullDisk is a file that takes no writes.
const fullDisk = "/dev/full"

// recordedBy serves a request with an audit log, and returns its events.
func recordedBy(t *testing.T, mode string, file string, api http.HandlerFunc, r *http.Request) (code int, events []auditv1.Event) {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, users: [root]}, {level: Metadata}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if file == "" {
		file = filepath.Join(t.TempDir(), "audit.log")
	}
	c, err := audit.Read(audit.Options{PolicyFile: policy, File: audit.FileOptions{
		Path: file, Format: audit.JSON, Version: audit.Version, Delivery: audit.Delivery{Mode: mode, MaxEventSize: 1, MaxBatchSum: 1},
	}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := everyone(api)
	o.Audit = l
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if reason := recover(); reason != nil && reason != http.ErrAbortHandler {
				panic(reason)
			}
		}()
		New(o).ServeHTTP(w, r)
	}()
	if file == fullDisk {
		return w.Code, nil
	}
	data, _ := os.ReadFile(file)
	for line := range strings.Lines(string(data)) {
		var e auditv1.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return w.Code, events
}

// Each request has the events of its stages, with the user that authenticated, the impersonated user and
// the status of the answer.
func TestAuditStages(t *testing.T) {
	as := newRequest("GET", "/api/v1/pods", "bob")
	as.Header.Set("Impersonate-User", "eve")
	for name, tt := range map[string]struct {
		request *http.Request
		api     http.HandlerFunc
		want    string
	}{
		"get":              {newRequest("GET", "/api/v1/namespaces/a/pods/b", "bob"), nothing, "RequestReceived ResponseComplete bob 200"},
		"watch":            {newRequest("GET", "/api/v1/pods?watch=1", "bob"), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }, "RequestReceived ResponseStarted ResponseComplete bob 200"},
		"no answer":        {newRequest("GET", "/api/v1/pods?watch=1", "bob"), nothing, "RequestReceived ResponseStarted ResponseComplete bob 200"},
		"impersonation":    {as, nothing, "RequestReceived ResponseComplete bob as eve 200"},
		"wrong token":      {newRequest("GET", "/api/v1/pods", "unknown"), nothing, "ResponseStarted  401"},
		"panic":            {newRequest("GET", "/api/v1/pods", "bob"), func(http.ResponseWriter, *http.Request) { panic("a defect") }, "RequestReceived Panic bob 500"},
		"panic in a watch": {newRequest("GET", "/api/v1/pods?watch=1", "bob"), func(http.ResponseWriter, *http.Request) { panic("a defect") }, "RequestReceived Panic bob 500"},
		"aborted answer":   {newRequest("GET", "/api/v1/pods", "bob"), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); panic(http.ErrAbortHandler) }, "RequestReceived ResponseComplete bob 200"},
		"level None":       {newRequest("GET", "/api/v1/pods", "root"), nothing, ""},
		"invalid timeout":  {newRequest("GET", "/api/v1/pods?timeout=soon", "bob"), nothing, "ResponseStarted  400"},
	} {
		_, events := recordedBy(t, audit.Blocking, "", tt.api, tt.request)
		got := ""
		for i, e := range events {
			got += string(e.Stage) + " "
			if i < len(events)-1 {
				continue
			}
			got += e.User.Username
			if e.ImpersonatedUser != nil {
				got += " as " + e.ImpersonatedUser.Username
			}
			body, _ := json.Marshal(e.ResponseStatus.Code)
			got += " " + string(body)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The event of a request that is rejected before its user is known has the message of the Status. If the
// client accepts no Status, the message names the kinds of credentials.
func TestAuditFailure(t *testing.T) {
	with := func(path, name, value string) *http.Request {
		r := newRequest("GET", path, "")
		r.Header.Set("Accept", "bogus/x")
		r.Header.Set(name, value)
		return r
	}
	certificate := with("/api", "Authorization", "Bearer unknown")
	certificate.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}
	for _, tt := range []struct {
		request *http.Request
		want    string
	}{
		{newRequest("GET", "/api", "unknown"), "Unauthorized"},
		{with("/api", "Authorization", "Bearer unknown"), "Authentication failed, attempted: bearer"},
		{with("/api", "Authorization", " BEARER  unknown"), "Authentication failed, attempted: bearer"},
		{with("/api", "Authorization", "Basic YTpi"), "Authentication failed, attempted: basic"},
		{with("/api?access_token=a", "Authorization", "Basic YTpi"), "Authentication failed, attempted: basic, access_token"},
		{with("/api?access_token=+", "Authorization", "Bearer"), "Authentication failed, no credentials provided"},
		{certificate, "Authentication failed, attempted: bearer, x509"},
		{with("/api/v1/pods?timeout=soon", "Authorization", "Bearer bob"), `invalid timeout specified in the request URL - time: invalid duration "soon"`},
	} {
		_, events := recordedBy(t, audit.Blocking, "", nothing, tt.request)
		if len(events) != 1 || events[0].ResponseStatus == nil {
			t.Fatalf("%s: events %+v", tt.request.URL, events)
		}
		if got := events[0].ResponseStatus.Message; got != tt.want {
			t.Errorf("%s: the event has the message %q, want %q", tt.request.URL, got, tt.want)
		}
	}
}

// Without its event, a request is rejected only in the mode blocking-strict, before a handler runs.
func TestAuditThatFails(t *testing.T) {
	if _, err := os.Stat(fullDisk); err != nil {
		t.Skip("the system has no /dev/full")
	}
	for mode, want := range map[string]int{audit.Blocking: http.StatusAccepted, audit.BlockingStrict: http.StatusInternalServerError} {
		served := false
		code, _ := recordedBy(t, mode, fullDisk, func(w http.ResponseWriter, _ *http.Request) { served = true; w.WriteHeader(http.StatusAccepted) },
			newRequest("GET", "/api/v1/pods", "bob"))
		if code != want || served != (mode == audit.Blocking) {
			t.Errorf("%s: %d, served %v", mode, code, served)
		}
	}
}
