package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
)

var discard = slog.New(slog.DiscardHandler)

// delivery is the Delivery of a mode with kube-apiserver's sizes.
func delivery(mode string) Delivery {
	return Delivery{Mode: mode, BufferSize: 10000, MaxBatchSize: 400, MaxBatchWait: time.Hour, MaxEventSize: 100 << 10, MaxBatchSum: 10 << 20}
}

const everything = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n"

// open opens a Log in a folder, with a policy that selects everything.
func open(t *testing.T, o Options) *Log {
	t.Helper()
	o.PolicyFile = filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(o.PolicyFile, []byte(everything), 0o600); err != nil {
		t.Fatal(err)
	}
	if o.File.Path != "" && o.File.Format == "" {
		o.File.Format = JSON
	}
	o.File.Version, o.Webhook.Version = Version, Version
	c, err := Read(o, discard)
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.Open((&net.Dialer{}).DialContext)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// count returns the value of a counter.
func count(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// record begins the Record of a request.
func record(t *testing.T, l *Log, method, url string) *Record {
	t.Helper()
	r := httptest.NewRequest(method, url, nil)
	q := &request.Request{Info: request.Parse(r), AuditID: "id", User: &request.User{Name: "jane", Groups: []string{"devs"}}}
	return l.Begin(q, r, time.Now())
}

// An event has the JSON of json.Marshal.
func TestEncode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		return []string{"", "a", "", "é", "<b>&\"", "a b", "\x00\u2028", "\xff", "x/y=1"}[r.IntN(9)]
	}
	texts := func() (all []string) {
		for range r.IntN(3) {
			all = append(all, text())
		}
		return all
	}
	user := func() authenticationv1.UserInfo {
		u := authenticationv1.UserInfo{Username: text(), UID: text(), Groups: texts()}
		for range r.IntN(3) {
			if u.Extra == nil {
				u.Extra = map[string]authenticationv1.ExtraValue{}
			}
			u.Extra[text()] = texts()
		}
		return u
	}
	object := func() *runtime.Unknown {
		if r.IntN(2) == 0 {
			return nil
		}
		return raw([]byte([]string{`{}`, `{ "a" : [1, 2.50] }`, `"<"`, `null`}[r.IntN(4)]))
	}
	for range 2000 {
		e := auditv1.Event{
			Level: auditv1.Level(text()), AuditID: types.UID(text()), Stage: auditv1.Stage(text()), RequestURI: text(), Verb: text(), User: user(),
			SourceIPs: texts(), UserAgent: text(), RequestObject: object(), ResponseObject: object(),
		}
		if r.IntN(2) == 0 {
			as := user()
			e.ImpersonatedUser, e.AuthenticationMetadata = &as, &auditv1.AuthenticationMetadata{ImpersonationConstraint: text()}
		}
		if r.IntN(2) == 0 {
			e.ObjectRef = &auditv1.ObjectReference{Resource: text(), Namespace: text(), Name: text(), UID: types.UID(text()), APIGroup: text(), APIVersion: text(), ResourceVersion: text(), Subresource: text()}
		}
		switch r.IntN(3) {
		case 0:
			e.ResponseStatus = &metav1.Status{Code: 200}
		case 1:
			e.ResponseStatus = &metav1.Status{Code: 404, Status: text(), Message: text(), Details: &metav1.StatusDetails{Name: text()}}
		}
		if r.IntN(2) == 0 {
			e.RequestReceivedTimestamp, e.StageTimestamp = metav1.NewMicroTime(time.Unix(r.Int64N(1<<32), r.Int64N(1e9))), metav1.NowMicro()
		}
		for range r.IntN(3) {
			if e.Annotations == nil {
				e.Annotations = map[string]string{}
			}
			e.Annotations[text()] = text()
		}
		want, err := json.Marshal(&e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := appendEvent(nil, &e)
		if err != nil || string(got) != string(want) {
			t.Fatalf("%v\n%s, want\n%s", err, got, want)
		}
	}
}

// The first rule that matches decides. The names are those of the fields of a rule.
func TestPolicy(t *testing.T) {
	p, err := parsePolicy([]byte(`
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, users: [kubelet]}
- {level: Metadata, userGroups: [devs], verbs: [list], omitStages: [ResponseComplete]}
- {level: Request, resources: [{group: "", resources: [pods/status, "*/scale"], resourceNames: [a]}], omitManagedFields: false}
- {level: RequestResponse, resources: [{group: "", resources: ["nodes/*"]}, {group: apps}], namespaces: [default, ""]}
- {level: Metadata, nonResourceURLs: ["/api*", "/version"]}
`), discard)
	if err != nil {
		t.Fatal(err)
	}
	user := &request.User{Name: "jane", Groups: []string{"devs"}}
	for _, tt := range []struct {
		user     *request.User
		url      string
		level    audit.Level
		stages   int
		managers bool
	}{
		{&request.User{Name: "kubelet"}, "/api/v1/nodes", audit.LevelNone, 1, true},
		{user, "/api/v1/pods", audit.LevelMetadata, 2, true},
		{nil, "/api/v1/pods", audit.LevelNone, 1, true},
		{user, "/api/v1/namespaces/x/pods/a/status", audit.LevelRequest, 1, false},
		{user, "/api/v1/namespaces/x/pods/b/status", audit.LevelNone, 1, true},
		{user, "/api/v1/namespaces/x/pods/a", audit.LevelNone, 1, true},
		{user, "/api/v1/namespaces/x/replicationcontrollers/a/scale", audit.LevelRequest, 1, false},
		{user, "/api/v1/nodes/n/status", audit.LevelRequestResponse, 1, true},
		{user, "/apis/apps/v1/namespaces/default/deployments/d", audit.LevelRequestResponse, 1, true},
		{user, "/apis/apps/v1/namespaces/other/deployments/d", audit.LevelNone, 1, true},
		{user, "/apis", audit.LevelMetadata, 1, true},
		{user, "/version", audit.LevelMetadata, 1, true},
		{user, "/version/x", audit.LevelNone, 1, true},
	} {
		r := httptest.NewRequest(http.MethodGet, tt.url, nil)
		d := p.Decide(&authz.Attributes{User: tt.user, Info: request.Parse(r)})
		if d.Level != tt.level || len(d.OmitStages) != tt.stages || d.OmitManagedFields != tt.managers {
			t.Errorf("%s: %+v, want %s with %d omitted stages", tt.url, d, tt.level, tt.stages)
		}
	}
}

func TestWrongPolicies(t *testing.T) {
	for policy, want := range map[string]string{
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n":                                          "loaded illegal policy with 0 rules",
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All}]\n":                              `rules[0].level: Unsupported value: "All"`,
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: [api]}]\n":     "must begin with a '/'",
		"apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]\n":                        "failed decoding",
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, omitStages: [End]}]\n":          "allowed stages are",
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, resources: [{group: a/v1}]}]\n": `rules[0].resources.group: Invalid value: "a/v1"`,
		"no policy": "failed decoding",
	} {
		if _, err := parsePolicy([]byte(policy), discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", policy, err, want)
		}
	}
	if _, err := parsePolicy([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, levels: x}]\n"), discard); err != nil {
		t.Errorf("an unknown field is no error, only a warning: %v", err)
	}
}

// A file has a line for each event. A record without a body in its level has none.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "audit.log")
	l := open(t, Options{File: FileOptions{Path: path, Delivery: delivery(Blocking)}})
	rec := record(t, l, "POST", "/api/v1/namespaces/default/configmaps")
	rec.Received()
	rec.Object(request.ObjectMeta{Name: "a", UID: "u"}, func() []byte { return []byte(`{"data":{}}`) })
	rec.request.Annotate("k", "v")
	rec.Complete(201, false)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var events []auditv1.Event
	for line := range bytes.Lines(data) {
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	if len(events) != 2 || events[0].Stage != auditv1.StageRequestReceived || events[1].Stage != auditv1.StageResponseComplete {
		t.Fatalf("events: %s", data)
	}
	e := events[1]
	if e.Kind != "Event" || e.APIVersion != Version || e.User.Username != "jane" || e.ObjectRef.Name != "a" || e.ObjectRef.UID != "u" ||
		string(e.RequestObject.Raw) != `{"data":{}}` || e.ResponseStatus.Code != 201 || e.Annotations["k"] != "v" {
		t.Errorf("event: %s", data)
	}
	if events[0].RequestObject != nil || events[0].ResponseStatus != nil {
		t.Errorf("the event of the beginning has parts of the end: %s", data)
	}
}

// A full file is renamed. Old files are compressed, and removed when they are too many.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	f, err := openRotating(&FileOptions{Path: path, MaxSize: 1, MaxBackups: 2, Compress: true}, discard)
	if err != nil {
		t.Fatal(err)
	}
	f.max = 100
	line := []byte(strings.Repeat("x", 59) + "\n")
	now := time.Now()
	for i := range 5 {
		if _, err := f.write([][]byte{line}); err != nil {
			t.Fatal(err)
		}
		if i < 4 {
			if err := f.rotate(now.Add(time.Duration(i) * time.Second)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := f.write([][]byte{line}); err != nil { // does not fit: the file is rotated
		t.Fatal(err)
	}
	f.tidying.Wait()
	f.clean()
	f.close()
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(data, line) {
		t.Errorf("the file has %q, %v", data, err)
	}
	rotated := f.rotated()
	if len(rotated) != 2 {
		t.Fatalf("%v", rotated)
	}
	for _, r := range rotated {
		from, err := os.Open(filepath.Join(dir, r.name))
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		z, err := gzip.NewReader(from)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(z); err != nil || !bytes.Equal(data, line) {
			t.Errorf("%s has %q, %v", r.name, data, err)
		}
	}
}

// A rotated file keeps its mode. If a rotation fails, the file grows and loses nothing.
func TestRotationThatFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	path := filepath.Join(dir, "audit.log")
	f, err := openRotating(&FileOptions{Path: path, MaxSize: 1}, discard)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	f.max = 100
	line := []byte(strings.Repeat("x", 59) + "\n")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := f.write([][]byte{line}); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 || info.Size() != 60 {
		t.Errorf("the new file: %v, %v", info, err)
	}
	f.tidying.Wait()
	f.options.Path = filepath.Join(dir, strings.Repeat("long", 100)) // no such name
	for range 2 {
		if _, err := f.write([][]byte{line}); err != nil {
			t.Errorf("an event is lost: %v", err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 180 {
		t.Errorf("the file after failed rotations: %v, %v", info, err)
	}
}

// An event has the objects that its level allows, and no others.
func TestLevels(t *testing.T) {
	for level, want := range map[audit.Level][2]bool{
		audit.LevelMetadata: {false, false}, audit.LevelRequest: {true, false}, audit.LevelRequestResponse: {true, true},
	} {
		l := &Log{policy: newPolicy(&audit.Policy{Rules: []audit.PolicyRule{{Level: level}}}), log: discard, metrics: newMetrics()}
		rec := record(t, l, "POST", "/api/v1/namespaces/default/secrets")
		rec.Object(request.ObjectMeta{Name: "a"}, func() []byte { return []byte(`{}`) })
		rec.Answer([]byte(`{}`))
		rec.AnswerStatus(&metav1.Status{Message: "m"}, func() []byte { return []byte(`{}`) })
		if got := [2]bool{rec.event.RequestObject != nil, rec.event.ResponseObject != nil}; got != want || rec.event.ObjectRef.Name != "a" || rec.event.ResponseStatus.Message != "m" {
			t.Errorf("%s: objects of request and answer %v, want %v", level, got, want)
		}
		patch := record(t, l, "PATCH", "/api/v1/namespaces/default/secrets/a")
		if patch.Body([]byte(`{}`)); (patch.event.RequestObject != nil) != want[0] {
			t.Errorf("%s: a patch is recorded: %v", level, !want[0])
		}
	}
}

// A full disk rejects requests only in the mode that says so. All lost events are counted.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("the system has no /dev/full")
	}
	for mode, passes := range map[string]bool{Batch: true, Blocking: true, BlockingStrict: false} {
		l := open(t, Options{File: FileOptions{Path: "/dev/full", Delivery: delivery(mode)}})
		rec := record(t, l, "GET", "/api/v1/pods")
		if got := rec.Received(); got != passes {
			t.Errorf("%s: a request passes: %v, want %v", mode, got, passes)
		}
		rec.Complete(200, false)
		l.Close()
		if got := count(t, l.metrics.errors.WithLabelValues("log")); got != 2 {
			t.Errorf("%s: %v events are lost, want 2", mode, got)
		}
		if got := count(t, l.metrics.rejected); (got == 1) == passes {
			t.Errorf("%s: %v requests are rejected", mode, got)
		}
	}
}

// A receiver is a webhook that keeps the events that it accepts.
type receiver struct {
	*httptest.Server
	config string

	mu     sync.Mutex
	events []auditv1.Event
	fails  atomic.Int64  // requests that it refuses
	hold   chan struct{} // requests wait for it; nil for none
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.hold != nil {
			<-r.hold
		}
		if r.fails.Add(-1) >= 0 {
			http.Error(w, "busy", http.StatusForbidden)
			return
		}
		var list auditv1.EventList
		if err := json.NewDecoder(req.Body).Decode(&list); err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, list.Items...)
	}))
	t.Cleanup(r.Close)
	r.config = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: %q}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n", r.URL)
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// A webhook receives batches. A request is repeated after any error.
func TestWebhook(t *testing.T) {
	to := newReceiver(t)
	to.fails.Store(2)
	d := delivery(Batch)
	d.MaxBatchSize, d.Throttle, d.ThrottleQPS, d.Burst = 4, true, 1000, 1
	l := open(t, Options{Webhook: WebhookOptions{ConfigFile: to.config, InitialBackoff: time.Millisecond, Delivery: d}})
	for range 5 {
		rec := record(t, l, "GET", "/api/v1/pods")
		rec.Received()
		rec.Complete(200, false)
	}
	l.Close()
	to.mu.Lock()
	defer to.mu.Unlock()
	if len(to.events) != 10 || to.events[0].ObjectRef.Resource != "pods" {
		t.Errorf("the webhook received %d events", len(to.events))
	}
	if got := count(t, l.metrics.errors.WithLabelValues("webhook")); got != 0 {
		t.Errorf("%v events are lost", got)
	}
}

// While a webhook does not answer, requests go on, and the memory of events is bounded.
func TestDeadWebhook(t *testing.T) {
	to := newReceiver(t)
	to.hold = make(chan struct{})
	d := delivery(Batch)
	d.MaxBatchWait = time.Millisecond
	l := open(t, Options{Webhook: WebhookOptions{ConfigFile: to.config, InitialBackoff: time.Millisecond, Delivery: d}})
	l.sinks[0].most = 8 << 20
	large := []byte(`{"data":{"a":"` + strings.Repeat("x", 1<<20) + `"}}`)
	const requests = 20 // 20 MB
	for range requests {
		rec := record(t, l, "POST", "/api/v1/namespaces/default/configmaps")
		rec.Object(request.ObjectMeta{}, func() []byte { return large })
		rec.Complete(201, false)
	}
	lost := count(t, l.metrics.errors.WithLabelValues("buffered"))
	if waiting := l.sinks[0].waiting.Load(); waiting > 8<<20 || lost < requests-8 || lost == requests {
		t.Errorf("%d bytes wait, %v events are lost", waiting, lost)
	}
	close(to.hold)
	l.Close()
	to.mu.Lock()
	defer to.mu.Unlock()
	if got := float64(len(to.events)); got != requests-lost {
		t.Errorf("the webhook received %v events, and %v were lost", got, lost)
	}
}

// An event that is too large loses its objects. One that is still too large is dropped.
func TestTruncate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	d := delivery(Blocking)
	d.Truncate, d.MaxEventSize = true, 2000
	l := open(t, Options{File: FileOptions{Path: path, Delivery: d}})
	for _, size := range []int{100, 5000} {
		rec := record(t, l, "POST", "/api/v1/namespaces/default/configmaps")
		rec.Object(request.ObjectMeta{}, func() []byte { return []byte(`"` + strings.Repeat("x", size) + `"`) })
		rec.Complete(201, false)
	}
	record(t, l, "GET", "/api/v1/pods?labelSelector="+strings.Repeat("x", 3000)).Complete(200, false)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept []bool
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		var e auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, e.RequestObject != nil)
		if truncated := e.Annotations[truncated] == "true"; truncated == (e.RequestObject != nil) {
			t.Errorf("annotations %v with object %v", e.Annotations, e.RequestObject != nil)
		}
	}
	if len(kept) != 2 || !kept[0] || kept[1] {
		t.Errorf("objects are kept: %v", kept)
	}
	if got := count(t, l.metrics.errors.WithLabelValues("truncate")); got != 1 {
		t.Errorf("%v events are dropped, want 1", got)
	}
}

func TestLegacyFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, Options{File: FileOptions{Path: path, Format: Legacy, Delivery: delivery(Blocking)}})
	record(t, l, "GET", "/api/v1/namespaces/default/pods").Complete(200, false)
	data, _ := os.ReadFile(path)
	const want = `AUDIT: id="id" stage="ResponseComplete" ip="192.0.2.1" method="list" user="jane" groups="\"devs\"" as="<self>" asgroups="<lookup>" user-agent="" namespace="default" uri="/api/v1/namespaces/default/pods" response="200"`
	if !strings.Contains(string(data), want) {
		t.Errorf("%s\nwant %s", data, want)
	}
}

// managedFields are removed from objects, lists and Tables.
func TestOmitManagedFields(t *testing.T) {
	for in, want := range map[string]string{
		`{"metadata":{"managedFields":[1],"name":"a"}}`:                                  `{"metadata":{"name":"a"}}`,
		`{"items":[{"metadata":{"managedFields":[1]},"n":1.50}]}`:                        `{"items":[{"metadata":{},"n":1.50}]}`,
		`{"rows":[{"cells":[],"object":{"metadata":{"managedFields":[1],"name":"b"}}}]}`: `{"rows":[{"cells":[],"object":{"metadata":{"name":"b"}}}]}`,
		`[1]`: `[1]`,
	} {
		if got := string(withoutManagers([]byte(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// Invalid options are those of kube-apiserver.
func TestWrongOptions(t *testing.T) {
	file := func(change func(*FileOptions)) Options {
		f := FileOptions{Path: "-", Format: JSON, Version: Version, Delivery: delivery(Batch)}
		change(&f)
		return Options{File: f}
	}
	for want, o := range map[string]Options{
		"invalid audit log mode x":                     file(func(f *FileOptions) { f.Delivery.Mode = "x" }),
		"invalid audit log format x":                   file(func(f *FileOptions) { f.Format = "x" }),
		"--audit-log-maxage -1":                        file(func(f *FileOptions) { f.MaxAge = -1 }),
		"invalid group version":                        file(func(f *FileOptions) { f.Version = "audit.k8s.io/v1beta1" }),
		"invalid audit batch log buffer size 0":        file(func(f *FileOptions) { f.Delivery.BufferSize = 0 }),
		"invalid audit batch log throttle QPS 0":       file(func(f *FileOptions) { f.Delivery.Throttle = true }),
		"invalid audit truncate log max event size 0":  file(func(f *FileOptions) { f.Delivery.MaxEventSize = 0 }),
		"must be greater than max event size (102400)": file(func(f *FileOptions) { f.Delivery.MaxBatchSum = 5 }),
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Without a policy, or without a sink, there is no Log, and a nil Log records nothing.
func TestNoLog(t *testing.T) {
	o := Options{File: FileOptions{Path: "-", Format: JSON, Version: Version, Delivery: delivery(Blocking)}}
	c, err := Read(o, discard)
	if c != nil || err != nil {
		t.Fatalf("%v, %v", c, err)
	}
	l, err := c.Open(nil)
	if l != nil || err != nil {
		t.Fatalf("%v, %v", l, err)
	}
	if rec := l.Begin(&request.Request{}, httptest.NewRequest(http.MethodGet, "/", nil), time.Now()); rec != nil {
		t.Error("a request is recorded")
	}
	l.Close()
	if got := l.Collectors(); len(got) == 0 {
		t.Error("the counters are missing, which alerts divide by")
	}
}

func BenchmarkMetadata(b *testing.B) {
	l := &Log{policy: newPolicy(&audit.Policy{Rules: []audit.PolicyRule{{Level: audit.LevelMetadata}}}), log: discard, metrics: newMetrics()}
	l.add("log", output{must(os.OpenFile(os.DevNull, os.O_WRONLY, 0))}, Delivery{Mode: Blocking}, false)
	r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default/configmaps/a", nil)
	q := &request.Request{Info: request.Parse(r), AuditID: "0b0c", User: &request.User{Name: "jane", Groups: []string{"devs"}}}
	q.Annotate("authorization.k8s.io/decision", "allow")
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		rec := l.Begin(q, r, now)
		rec.Received()
		rec.Complete(200, false)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
