package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/wire"
)

const event = `{"kind":"Event","level":"RequestResponse","auditID":"compare-1","stage":"ResponseComplete","requestURI":"/api/v1/pods?limit=1&continue=abc","verb":"list",` +
	`"user":{"username":"admin","groups":["a","b"]},"objectRef":{"resource":"pods","name":"a","resourceVersion":"7"},"responseStatus":{"metadata":{},"code":404,"message":"x","details":{"name":"a"}},` +
	`"requestObject":{"kind":"Pod","spec":{"a":1}},"responseObject":{"kind":"Status","code":404},"annotations":{"authorization.k8s.io/decision":"allow","apiserver.latency.k8s.io/total":"1s"}}`

// Events with a difference that a client would see are different. Values of a moment or of a server are not.
func TestComparable(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		differ   bool
	}{
		{`"continue=abc"`, `"continue=def"`, false},
		{`"resourceVersion":"7"`, `"resourceVersion":"8"`, false},
		{`"message":"x"`, `"message":"y"`, false},
		{`total":"1s"`, `total":"2s"`, false},
		{`"a":1}`, `"a":1.0}`, false},
		{`"level":"RequestResponse"`, `"level":"Request"`, true},
		{`"stage":"ResponseComplete"`, `"stage":"ResponseStarted"`, true},
		{`limit=1`, `limit=2`, true},
		{`"admin"`, `"other"`, true},
		{`["a","b"]`, `["b","a"]`, true},
		{`"resource":"pods"`, `"resource":"services"`, true},
		{`,"resourceVersion":"7"`, ``, true},
		{`"code":404,"message"`, `"code":409,"message"`, true},
		{`"message":"x",`, ``, true},
		{`"a":1}`, `"a":2}`, true},
		{`,"responseObject":{"kind":"Status","code":404}`, ``, true},
		{`"allow"`, `"forbid"`, true},
	} {
		changed := strings.Replace(event, tt.from, tt.to, 1)
		theirs, ours := normal(t, event), normal(t, changed)
		if differ := len(judge.Compare(theirs, ours)) > 0; differ != tt.differ {
			t.Errorf("%s in place of %s: different %v", tt.to, tt.from, differ)
		}
	}
	if len(judge.Compare(normal(t, event), normal(t, event, event))) == 0 {
		t.Error("one event is as good as two")
	}
}

func normal(t *testing.T, events ...string) *judge.Normal {
	t.Helper()
	var all []json.RawMessage
	for _, e := range events {
		all = append(all, json.RawMessage(e))
	}
	body, err := json.Marshal(map[string]any{"events": comparable(all)})
	if err != nil {
		t.Fatal(err)
	}
	return judge.NewServer("scope").Normal(&wire.Answer{Code: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body})
}

// A log is read while it is written: a line that is not complete waits, and events of others do not count.
func TestAuditLog(t *testing.T) {
	l := &auditLog{path: filepath.Join(t.TempDir(), "audit.log"), events: map[string][]json.RawMessage{}}
	for _, tt := range []struct {
		content string
		want    int
	}{
		{`{"auditID":"other"}` + "\n" + `{"auditID":"compare-1"}` + "\n" + `{"auditID":`, 1},
		{`{"auditID":"other"}` + "\n" + `{"auditID":"compare-1"}` + "\n" + `{"auditID":"compare-1"}` + "\n", 2},
	} {
		if err := os.WriteFile(l.path, []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := l.count([]string{"compare-1"}); err != nil || got[0] != tt.want {
			t.Errorf("%d events, %v, want %d", got, err, tt.want)
		}
	}
	if events := l.take("compare-1"); len(events) != 2 || len(l.take("compare-1")) != 0 {
		t.Errorf("took %d events", len(events))
	}
}
