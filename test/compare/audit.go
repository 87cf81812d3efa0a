package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/test/compare/generate"
	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

// policies is the number of audit policies of a run. The servers start again for each, because neither
// reads its policy a second time.
const policies = 12

// policyOf returns the number of the policy of a sequence.
func policyOf(n uint64) int { return int(n % policies) }

// runAudits compares the audit events of sequences under all policies of a seed, one after the other.
func runAudits(ctx context.Context, o Options, s servers.Options, report *Report) error {
	if s.Reference != "start" {
		return errors.New("-audit starts both servers itself, with a policy")
	}
	o.Kinds = append(slices.Clip(o.Kinds), generate.Aggregated)
	o.Time /= policies
	for i := range policies {
		if o.Count > 0 && !slices.ContainsFunc(first(o.From, o.Count), func(n uint64) bool { return policyOf(n) == i }) {
			continue
		}
		if err := runPolicy(ctx, i, o, s, report); err != nil {
			return fmt.Errorf("policy %d: %w", i, err)
		}
	}
	return nil
}

// first returns the numbers of the first sequences, as many as there are policies.
func first(from, count uint64) (out []uint64) {
	for i := range min(count, policies) {
		out = append(out, from+i)
	}
	return out
}

// runPolicy compares the sequences of one policy.
func runPolicy(ctx context.Context, i int, o Options, s servers.Options, report *Report) (err error) {
	s.Dir = filepath.Join(s.Dir, fmt.Sprint("policy", i))
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return err
	}
	policy := policyFor(o.Seed, o.From, i)
	if o.audits, err = withAudit(&s, policy); err != nil {
		return err
	}
	fmt.Fprintf(report.out, "policy %d: %s\n", i, describe(policy))
	o.mine = func(n uint64) bool { return policyOf(n) == i }
	pair, err := servers.Start(ctx, s)
	if err != nil {
		return err
	}
	defer pair.Stop()
	end, err := prepareAudit(ctx, pair)
	if err != nil {
		return err
	}
	defer end()
	return run(ctx, o, pair, report)
}

// policyFor returns a random policy of a seed. Its rules may name a third of its sequences, the first 600
// of a run. Runs that begin elsewhere agree about a sequence.
func policyFor(seed, from uint64, i int) map[string]any {
	var names []string
	for n := from - from%(3*policies) + uint64(i); n < from+600*policies; n += 3 * policies {
		for attempt := range 1 + repeats + attempts {
			names = append(names, wire.ScopeName(int(n), attempt))
		}
	}
	return generate.AuditVocabulary(names).Policy(rand.New(rand.NewPCG(seed, uint64(i))))
}

// describe returns a policy without its long lists of names.
func describe(policy map[string]any) string {
	data, err := json.Marshal(policy)
	if err != nil {
		return err.Error()
	}
	return longList.ReplaceAllString(string(data), "$1,…]")
}

var longList = regexp.MustCompile(`(\[(?:"[^"]*",){3})(?:"[^"]*",?){20,}\]`)

// audits are the audit logs of both servers, theirs first.
type audits [2]*auditLog

// withAudit makes both servers write audit logs, and gives them the users of audited requests.
func withAudit(o *servers.Options, policy map[string]any) (*audits, error) {
	data, err := json.Marshal(policy)
	if err != nil {
		return nil, err
	}
	file, tokens := filepath.Join(o.Dir, "policy.yaml"), filepath.Join(o.Dir, "users.csv")
	if err := errors.Join(os.WriteFile(file, data, 0o600), os.WriteFile(tokens, []byte(generate.Tokens), 0o600)); err != nil {
		return nil, err
	}
	var logs audits
	for i, flags := range []*[]string{&o.Theirs, &o.Ours} {
		path := filepath.Join(o.Dir, []string{"theirs.audit", "ours.audit"}[i])
		*flags = append(slices.Clip(*flags), "--audit-policy-file="+file, "--audit-log-path="+path, "--audit-log-maxsize=10000", "--token-auth-file="+tokens)
		logs[i] = &auditLog{path: path, events: map[string][]json.RawMessage{}}
	}
	return &logs, nil
}

// prepareAudit creates the objects of audited requests on both servers, with an API server behind both,
// and returns a function that stops it.
func prepareAudit(ctx context.Context, p *servers.Pair) (end func(), err error) {
	behind := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/teapot") {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer func() {
		if err != nil {
			behind.Close()
		}
	}()
	objects, err := generate.Grants()
	if err != nil {
		return nil, err
	}
	objects = append(objects, map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.present.example.com"},
		"spec": map[string]any{"group": "present.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15, "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "default", "name": "present", "port": behind.Listener.Addr().(*net.TCPAddr).Port}}})
	for _, c := range []*wire.Client{p.Theirs, p.Ours} {
		for _, o := range objects {
			if err := create(ctx, c, o); err != nil {
				return nil, err
			}
		}
		teapot := wire.Step{Method: "GET", Path: "/apis/present.example.com/v1/roses/teapot"}
		if err := servers.Wait(ctx, func() bool { return c.Do(ctx, teapot).Code == http.StatusTeapot }); err != nil {
			return nil, fmt.Errorf("%s does not reach the server behind it: %w", c.Host(), err)
		}
	}
	return behind.Close, nil
}

// create creates one of the objects of audited requests.
func create(ctx context.Context, c *wire.Client, o map[string]any) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	path := fmt.Sprintf("/apis/%v/%ss", o["apiVersion"], strings.ToLower(fmt.Sprint(o["kind"])))
	switch o["kind"] {
	case "Service":
		path = "/api/v1/namespaces/default/services"
	case "ValidatingAdmissionPolicy":
		path = strings.TrimSuffix(path, "ys") + "ies"
	}
	var last *wire.Answer
	step := wire.Step{Method: "POST", Path: path, Header: []wire.Field{{Name: "Content-Type", Value: "application/json"}}, Body: body}
	err = servers.Wait(ctx, func() bool { // the namespace may come a moment later
		last = c.Do(ctx, step)
		return last.Code == http.StatusCreated || last.Code == http.StatusConflict || last.Code == http.StatusUnprocessableEntity
	})
	if err != nil || last.Code == http.StatusUnprocessableEntity {
		return fmt.Errorf("%s: creating %s: %d %s", c.Host(), path, last.Code, last.Body)
	}
	return nil
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

// count reads new events, and returns the number of events of requests so far.
func (l *auditLog) count(ids []string) (all []int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.more(); err != nil {
		return nil, err
	}
	for _, id := range ids {
		all = append(all, len(l.events[id]))
	}
	return all, nil
}

// take returns the events of a request, and forgets them.
func (l *auditLog) take(id string) []json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events[id]
	delete(l.events, id)
	return events
}

// settle waits until both logs have equally many events of each request, and no event is new for a while,
// or until one log lags behind for too long.
func (a *audits) settle(ctx context.Context, ids []string) error {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	began := time.Now()
	since, last := began, []int(nil)
	for ctx.Err() == nil {
		theirs, err := a[0].count(ids)
		if err != nil {
			return err
		}
		ours, err := a[1].count(ids)
		if err != nil {
			return err
		}
		if now := append(theirs, ours...); !slices.Equal(now, last) {
			since, last = time.Now(), now
		}
		if slices.Equal(theirs, ours) && time.Since(since) > quiet || time.Since(began) > enough {
			return nil
		}
		<-look.C
	}
	return ctx.Err()
}

// auditPrefix is the prefix of the audit IDs of a run.
const auditPrefix = "compare-"

// audited returns a step with an audit ID.
func audited(s wire.Step, id string) wire.Step {
	s.Header = append(s.Header[:len(s.Header):len(s.Header)], wire.Field{Name: "Audit-Id", Value: id})
	return s
}

// authorizationReason is the annotation that names the binding that allows a request.
const authorizationReason = "authorization.k8s.io/reason"

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
		if annotations, ok := e["annotations"].(map[string]any); ok {
			maps.DeleteFunc(annotations, func(k string, _ any) bool { return strings.HasPrefix(k, "apiserver.latency.k8s.io/") })
			if reason, ok := annotations[authorizationReason].(string); ok {
				annotations[authorizationReason] = public.ReplaceAllString(reason, "$1 PUBLIC")
			}
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
		if uri, ok := e["requestURI"].(string); ok { // it may have the revision of a server, also in a token
			e["requestURI"] = token.ReplaceAllString(uri, "$1=TOKEN")
		}
		out = append(out, plainNumbers(e).(map[string]any))
	}
	return out
}

var (
	token = regexp.MustCompile(`(continue|resourceVersion)=[^&]+`)
	// public matches the two default roles that allow the same paths. Kubernetes names either.
	public = regexp.MustCompile(`(ClusterRole(?:Binding)?) "system:(?:discovery|public-info-viewer)"`)
)

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

// events compares the audit events of the steps with equal responses: the event of another response
// differs, too.
func (a *attempt) events(ctx context.Context) {
	a.both(func(_ int, s *side) { s.endWatches() })
	ids := make([]string, len(a.seq.Steps))
	for i := range ids {
		ids[i] = a.auditID(i)
	}
	err := a.audits.settle(ctx, ids)
	for i, id := range ids {
		var normal [2]*judge.Normal
		for n, log := range a.audits {
			body := []byte(fmt.Sprint(err))
			if events := comparable(log.take(id)); err == nil {
				body, err = json.Marshal(map[string]any{"events": events})
			}
			normal[n] = a.sides[n].server.Normal(&wire.Answer{Code: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body})
		}
		if slices.Contains(a.equal, i) {
			a.add(i, judge.Compare(normal[0], normal[1]))
		}
	}
}

// auditID returns the audit ID of a step.
func (a *attempt) auditID(i int) string { return fmt.Sprintf("%s%s-%d", auditPrefix, a.scope, i) }
