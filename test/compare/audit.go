package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

// auditPolicy logs requests at all levels and with all stages. Each of its rules selects some of the
// requests that the generator makes.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: None, nonResourceURLs: ["/healthz*", "/readyz"]}
- {level: Metadata, resources: [{group: "", resources: [secrets, "serviceaccounts/token"]}], omitStages: [RequestReceived]}
- {level: Metadata, verbs: [deletecollection], omitStages: [ResponseComplete]}
- {level: Request, resources: [{group: apps, resources: ["*/scale", "*/status"]}], omitManagedFields: true}
- {level: Request, verbs: [list], omitStages: [RequestReceived]}
- {level: None, resources: [{group: coordination.k8s.io}]}
- {level: RequestResponse, resources: [{group: apps}, {group: rich.example.com}], omitManagedFields: true}
- {level: Metadata, nonResourceURLs: ["/openapi/*"]}
- {level: RequestResponse}
`

// audits are the audit logs of both servers, theirs first.
type audits [2]*auditLog

// withAudit makes both servers write audit logs.
func withAudit(o *servers.Options) (*audits, error) {
	policy := filepath.Join(o.Dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	var logs audits
	for i, flags := range []*[]string{&o.Theirs, &o.Ours} {
		path := filepath.Join(o.Dir, []string{"theirs.audit", "ours.audit"}[i])
		*flags = append(*flags, "--audit-policy-file="+policy, "--audit-log-path="+path)
		logs[i] = &auditLog{path: path, events: map[string][]json.RawMessage{}}
	}
	return &logs, nil
}

// An auditLog reads a log while a server writes it.
type auditLog struct {
	path string

	mu     sync.Mutex
	read   int64
	events map[string][]json.RawMessage // by audit ID
}

// more reads the events that the server has written since the last call.
func (l *auditLog) more() error {
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(l.read, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // the rest of the line is still to come
			return nil
		}
		if err != nil {
			return err
		}
		l.read += int64(len(line))
		var e struct{ AuditID string }
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if strings.HasPrefix(e.AuditID, auditPrefix) {
			l.events[e.AuditID] = append(l.events[e.AuditID], line)
		}
	}
}

// take returns the events of a request, once there are n of them or the time is up, and forgets them.
func (l *auditLog) take(ctx context.Context, id string, n int) []json.RawMessage {
	until := time.Now().Add(time.Second)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		l.mu.Lock()
		err := l.more()
		events := l.events[id]
		if len(events) >= n || err != nil || time.Now().After(until) || ctx.Err() != nil {
			delete(l.events, id)
			l.mu.Unlock()
			return events
		}
		l.mu.Unlock()
		<-look.C
	}
}

// auditPrefix is the prefix of the audit IDs of a run.
const auditPrefix = "compare-"

// audited returns a step with an audit ID.
func audited(s wire.Step, id string) wire.Step {
	s.Header = append(s.Header[:len(s.Header):len(s.Header)], wire.Field{Name: "Audit-Id", Value: id})
	return s
}

// comparable returns events without values that depend on time. A Status is replaced by a mark:
// the comparison of responses covers it, and the order of its causes differs.
func comparable(events []json.RawMessage) (out []map[string]any) {
	for _, data := range events {
		var e map[string]any
		numbers := json.NewDecoder(bytes.NewReader(data))
		numbers.UseNumber()
		if err := numbers.Decode(&e); err != nil {
			e = map[string]any{"broken": string(data)}
		}
		if e["verb"] == "watch" && e["stage"] == "ResponseComplete" { // comes when the stream ends
			continue
		}
		if annotations, ok := e["annotations"].(map[string]any); ok {
			maps.DeleteFunc(annotations, func(k string, _ any) bool { return strings.HasPrefix(k, "apiserver.latency.k8s.io/") })
		}
		if o, ok := e["responseObject"].(map[string]any); ok && o["kind"] == "Status" {
			e["responseObject"] = "Status"
		}
		if s, ok := e["responseStatus"].(map[string]any); ok && s["message"] != nil {
			s["message"], s["details"] = true, s["details"] != nil
		}
		if ref, ok := e["objectRef"].(map[string]any); ok && ref["resourceVersion"] != nil {
			ref["resourceVersion"] = true
		}
		if o, ok := e["requestObject"].(map[string]any); ok && o["kind"] == "DeleteOptions" {
			if p, ok := o["preconditions"].(map[string]any); ok && p["resourceVersion"] != nil {
				p["resourceVersion"] = true
			}
		}
		if uri, ok := e["requestURI"].(string); ok { // a token has the revision of a server
			e["requestURI"] = token.ReplaceAllString(uri, "continue=TOKEN")
		}
		out = append(out, plainNumbers(e).(map[string]any))
	}
	return out
}

var token = regexp.MustCompile(`continue=[^&]+`)

// plainNumbers returns a value with each number in its shortest form. Numbers beyond float64 stay.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			v[k] = plainNumbers(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = plainNumbers(inner)
		}
	case json.Number:
		if f, err := v.Float64(); err == nil {
			return f + 0 // -0 is 0
		}
	}
	return v
}

// events compares the audit events of a step.
func (a *attempt) events(ctx context.Context, i int, id string) {
	var taken [2][]json.RawMessage
	taken[0] = a.audits[0].take(ctx, id, 2)
	taken[1] = a.audits[1].take(ctx, id, len(taken[0]))
	var normal [2]*judge.Normal
	for n, events := range taken {
		body, err := json.Marshal(map[string]any{"events": comparable(events)})
		if err != nil {
			body = []byte(err.Error())
		}
		normal[n] = a.sides[n].server.Normal(&wire.Answer{Code: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body})
	}
	a.add(i, judge.Compare(normal[0], normal[1]))
}
