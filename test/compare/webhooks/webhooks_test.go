// Package webhooks sends the requests of cases.yaml to a kube-apiserver and to anykind, with the same
// admission webhooks, and compares the responses, and the requests to the webhooks.
//
// A case has webhooks, their responses, and a sequence of requests, in a namespace of its own. See
// testCase, said and step for the format.
package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

var reference = flag.String("reference", "", "compare with a server that is started if it is \"start\"")

// plugins change or reject pods, which is out of scope.
const plugins = "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds,Priority,TaintNodesByCondition,PodTopologyLabels,PodResizeValidator,NodeDeclaredFeatureValidator"

// controllers disables the controllers of anykind that kube-apiserver leaves to
// kube-controller-manager.
const controllers = "--controllers=*,-garbage-collector-controller,-namespace-controller,-serviceaccount-controller,-root-ca-certificate-publisher-controller"

// A testCase is webhooks, and requests.
type testCase struct {
	Name string
	// Gates are feature gates of both servers.
	Gates string
	// Mutating and Validating are webhooks, without their common fields. One without a
	// namespaceSelector selects only the namespace of the case.
	Mutating, Validating []map[string]any
	// Answers are the responses of webhooks, by name: to the first call, the second call, and so on.
	// The last one repeats. Without any, a webhook allows everything.
	Answers map[string][]said
	// Before are steps that run before the webhooks exist.
	Before []step
	Steps  []step
}

// said is a response of a webhook.
type said struct {
	// Response is the response of the AdmissionReview. Its default for allowed is true, for uid the
	// uid of the request.
	Response map[string]any
	// Patch is a JSON patch for the Response.
	Patch []any
	// Review has other fields of the AdmissionReview.
	Review map[string]any
	Code   int    // HTTP status code
	Body   string // the whole body
	Hang   bool   // no response
}

// A step is a request, such as "POST /api/v1/namespaces/NS/configmaps?dryRun=All".
type step struct {
	Do    string
	As    string // user to impersonate
	Media string // of the body; if empty, JSON, or for PATCH a merge patch
	Body  any
	// Setup marks a step whose responses are not compared.
	Setup bool
	// Known is the reason for a difference, which must then occur.
	Known string
}

func TestWebhooks(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	data, err := os.ReadFile("cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []testCase
	if err := yaml.UnmarshalStrict(data, &cases); err != nil {
		t.Fatal(err)
	}
	hooks := startHooks(t)
	pairs := map[string]*servers.Pair{} // by gates
	for i, c := range cases {
		if pairs[c.Gates] == nil {
			pairs[c.Gates] = startPair(t, c.Gates)
		}
		t.Run(c.Name, func(t *testing.T) { c.run(t, pairs[c.Gates], hooks, fmt.Sprintf("case-%d", i)) })
	}
}

func startPair(t *testing.T, gates string) *servers.Pair {
	t.Helper()
	flags := []string{plugins}
	if gates != "" {
		flags = append(flags, "--feature-gates="+gates)
	}
	// Stop, not the context of the test, ends the servers.
	p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{
		Reference: "start", Store: "memory", Dir: t.TempDir(), Theirs: flags, Ours: append(flags[:len(flags):len(flags)], controllers),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func (c testCase) run(t *testing.T, p *servers.Pair, hooks *hooks, namespace string) {
	sides := []*side{newSide(t, "theirs", p.Theirs, hooks, namespace), newSide(t, "ours", p.Ours, hooks, namespace)}
	for _, x := range sides {
		x.must(step{Do: "POST /api/v1/namespaces", Body: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "NS"}}})
		for _, s := range c.Before {
			x.must(s)
		}
		x.configure(&c)
		defer x.clear(&c)
	}
	for i, s := range c.Steps {
		theirs, ours := sides[0].do(s), sides[1].do(s)
		reviews := [2][]review{sides[0].arrived(), sides[1].arrived()}
		if s.Setup {
			continue
		}
		where := fmt.Sprintf("step %d, %s", i+1, s.Do)
		differences := judge.Compare(sides[0].judge.Normal(theirs), sides[1].judge.Normal(ours))
		if s.Known != "" {
			if len(differences) == 0 {
				t.Errorf("%s: does not differ any more", where)
			}
			continue
		}
		for _, d := range differences {
			t.Errorf("%s: %s\n\tKubernetes %s\n\tanykind    %s", where, d.Place, d.Theirs, d.Ours)
		}
		if names := [2]string{asked(reviews[0]), asked(reviews[1])}; names[0] != names[1] {
			t.Errorf("%s: Kubernetes asks %s, anykind %s", where, names[0], names[1])
			continue
		}
		for j := range reviews[0] {
			for _, d := range judge.Compare(sides[0].normal(reviews[0][j]), sides[1].normal(reviews[1][j])) {
				t.Errorf("%s: what %s is asked: %s\n\tKubernetes %s\n\tanykind    %s", where, reviews[0][j].name, d.Place, d.Theirs, d.Ours)
			}
		}
		if testing.Verbose() {
			t.Logf("%s: %d %.300s (asks %s) %v", where, theirs.Code, theirs.Body, asked(reviews[0]), theirs.Header["Warning"])
		}
	}
}

// asked returns the names of the called webhooks.
func asked(reviews []review) string {
	names := make([]string, len(reviews))
	for i, r := range reviews {
		names[i] = r.name
	}
	return strings.Join(names, ", ")
}

// A side is one of the servers, with the state of a case.
type side struct {
	t         *testing.T
	name      string
	client    *wire.Client
	judge     *judge.Server
	hooks     *hooks
	namespace string
}

func newSide(t *testing.T, name string, c *wire.Client, h *hooks, namespace string) *side {
	return &side{t: t, name: name, client: c, judge: judge.NewServer(namespace), hooks: h, namespace: namespace}
}

var (
	nsWord      = regexp.MustCompile(`\bNS\b`)
	placeholder = regexp.MustCompile(`<(uid|rv):([^>]+)>`)
)

// fill replaces the placeholders for values of this server.
func (x *side) fill(text string) string {
	text = nsWord.ReplaceAllString(text, x.namespace)
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		m := placeholder.FindStringSubmatch(found)
		a := x.do(step{Do: "GET " + m[2]})
		var object struct{ Metadata map[string]any }
		_ = json.Unmarshal(a.Body, &object) // other bodies have no field
		return fmt.Sprint(object.Metadata[map[string]string{"uid": "uid", "rv": "resourceVersion"}[m[1]]])
	})
}

// do sends a request.
func (x *side) do(s step) *wire.Answer {
	x.t.Helper()
	method, path, _ := strings.Cut(s.Do, " ")
	r := wire.Step{Method: method, Path: x.fill(path)}
	if s.As != "" {
		r.Header = append(r.Header, wire.Field{Name: "Impersonate-User", Value: s.As}, wire.Field{Name: "Impersonate-Group", Value: "system:masters"},
			wire.Field{Name: "Impersonate-Extra-Team", Value: "blue"})
	}
	if s.Body != nil {
		data, err := json.Marshal(s.Body)
		if err != nil {
			x.t.Fatal(err)
		}
		r.Body = []byte(x.fill(string(data)))
		x.judge.Sent(r)
		media := s.Media
		switch {
		case media != "":
		case method == http.MethodPatch:
			media = "application/merge-patch+json"
		default:
			media = "application/json"
		}
		r.Header = append(r.Header, wire.Field{Name: "Content-Type", Value: media})
	}
	a := x.client.Do(x.t.Context(), r)
	a.Body = bytes.ReplaceAll(a.Body, []byte("/"+x.name+"/"), []byte("/side/")) // in the URL of a webhook
	return a
}

// must is do for a request that has to succeed.
func (x *side) must(s step) {
	x.t.Helper()
	if a := x.do(s); a.Code/100 != 2 {
		x.t.Fatalf("%s: %s: %d %s", x.name, s.Do, a.Code, a.Body)
	}
	x.arrived()
}

var plurals = map[string]string{"Mutating": "mutatingwebhookconfigurations", "Validating": "validatingwebhookconfigurations"}

func (c *testCase) webhooks() map[string][]map[string]any {
	return map[string][]map[string]any{"Mutating": c.Mutating, "Validating": c.Validating}
}

// configure creates the webhook configurations of a case, and waits until they are in force.
func (x *side) configure(c *testCase) {
	x.t.Helper()
	x.hooks.begin(x.name, c.Answers)
	for kind, webhooks := range c.webhooks() {
		if webhooks == nil {
			continue
		}
		all := []any{}
		for _, w := range webhooks {
			all = append(all, x.webhook(w))
		}
		// A probe webhook shows when they are in force.
		all = append(all, x.webhook(map[string]any{
			"name": "ready.example.com", "objectSelector": map[string]any{"matchLabels": map[string]any{"ready": kind}},
			"rules": []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}}},
		}))
		x.must(step{Do: "POST /apis/admissionregistration.k8s.io/v1/" + plurals[kind], Body: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind + "WebhookConfiguration", "metadata": map[string]any{"name": "NS"}, "webhooks": all,
		}})
		x.await(kind, true)
	}
}

// webhook completes a webhook of a case.
func (x *side) webhook(given map[string]any) map[string]any {
	w := map[string]any{
		"clientConfig":            map[string]any{"url": x.hooks.url(x.name, fmt.Sprint(given["name"])), "caBundle": x.hooks.ca()},
		"admissionReviewVersions": []any{"v1"}, "sideEffects": "None",
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "NS"}},
		"rules":             []any{map[string]any{"operations": []any{"*"}, "apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*/*"}}},
		"objectSelector":    map[string]any{"matchExpressions": []any{map[string]any{"key": "ready", "operator": "DoesNotExist"}}},
		"matchPolicy":       "Exact",
	}
	maps.Copy(w, given)
	return w
}

// await waits until a configuration is in force, or is no longer.
func (x *side) await(kind string, there bool) {
	x.t.Helper()
	probe := step{Do: "POST /api/v1/namespaces/NS/configmaps?dryRun=All", Body: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "probe", "labels": map[string]any{"ready": kind}},
	}}
	soon, cancel := context.WithTimeout(x.t.Context(), 20*time.Second)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		a := x.do(probe)
		x.arrived()
		if (a.Code != http.StatusCreated) == there {
			return
		}
		if x.name == "ours" { // it takes effect at once
			x.t.Fatalf("the %s configuration: %d %s", kind, a.Code, a.Body)
		}
		select {
		case <-again.C:
		case <-soon.Done():
			x.t.Fatalf("the %s configuration of Kubernetes: %d %s", kind, a.Code, a.Body)
		}
	}
}

// clear removes the configurations of a case.
func (x *side) clear(c *testCase) {
	for kind, webhooks := range c.webhooks() {
		if webhooks != nil {
			x.must(step{Do: "DELETE /apis/admissionregistration.k8s.io/v1/" + plurals[kind] + "/NS"})
			x.await(kind, false)
		}
	}
}

// arrived returns the requests to webhooks since the last call.
func (x *side) arrived() []review { return x.hooks.arrived(x.name) }

// normal returns a normalized review.
func (x *side) normal(r review) *judge.Normal {
	return x.judge.Normal(&wire.Answer{Code: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: r.body})
}
