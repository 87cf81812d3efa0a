package app

import (
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/anykind/anykind/internal/server"
)

//go:embed testdata/published-series.txt
var publishedSeries string

// Published alert rules and dashboards find their series in /metrics after some traffic: reads and
// writes, a watch, a rejected token, a request over the limit, a webhook and an aggregated API server
// that are down.
func TestPublishedSeries(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("bob,bob,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := start(t, Options{TokenFile: tokens, Unclassified: true, Limits: server.Limits{Reading: 1}, Hooks: Hooks{Answer: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("slow") {
				close(inside)
				<-release
			}
			next.ServeHTTP(w, r)
		})
	}}})
	defer stop(t, a)
	goOn := sync.OnceFunc(func() { close(release) })
	defer goOn()
	c := client(t, a, admin(t, a))
	request := func(want int, method, path, token, body string) {
		t.Helper()
		if code, answer := ask(t, c, method, a.URL()+path, token, body); code != want {
			t.Fatalf("%s %s: %d %s", method, path, code, answer)
		}
	}
	const all, one = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/a"
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
	request(201, "POST", all, "", object)
	request(200, "GET", one, "", "")
	request(200, "GET", all, "", "")
	request(200, "GET", "/api/v1/configmaps", "", "")
	request(200, "PUT", one, "", object)
	request(200, "PATCH", one, "", `{"data":{"a":"b"}}`)
	request(200, "GET", "/api/v1/endpoints", "", "") // deprecated
	request(200, "GET", all+"?watch=1&timeoutSeconds=1", "", "")
	request(200, "DELETE", one, "", "")
	request(201, "POST", "/api/v1/namespaces", "", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`)
	request(201, "POST", "/apis/apiregistration.k8s.io/v1/apiservices", "", `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService",
		"metadata":{"name":"v1.nothing.example.com"},"spec":{"group":"nothing.example.com","version":"v1","groupPriorityMinimum":1,"versionPriority":1}}`)
	const service = "/apis/apiregistration.k8s.io/v1/apiservices/v1.nothing.example.com"
	poll(t, func() bool { // a controller works after the request
		_, state := ask(t, c, "GET", a.URL()+service, "", "")
		return strings.Contains(state, `"type":"Available"`)
	})
	request(200, "PATCH", service, "", `{"spec":{"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"nothing"}}}`)
	request(201, "POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "", `{"apiVersion":"admissionregistration.k8s.io/v1",
		"kind":"ValidatingWebhookConfiguration","metadata":{"name":"w"},"webhooks":[{"name":"w.example.com","admissionReviewVersions":["v1"],"sideEffects":"None",
		"clientConfig":{"url":"https://127.0.0.1:1"},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["secrets"]}]}]}`)
	request(500, "POST", "/api/v1/namespaces/default/secrets", "", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`)
	guest := client(t, a, nil)
	if code, _ := ask(t, guest, "GET", a.URL()+"/api", "wrong", ""); code != 401 {
		t.Fatalf("a wrong token: %d", code)
	}
	done := make(chan error, 1)
	go func() {
		r, err := c.Get(a.URL() + all + "?slow")
		if err == nil {
			err = r.Body.Close()
		}
		done <- err
	}()
	<-inside
	if code, _ := ask(t, guest, "GET", a.URL()+all, "bob", ""); code != 429 {
		t.Fatalf("a request over the limit: %d", code)
	}
	goOn()
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	var problems []string
	poll(t, func() bool {
		_, metrics := ask(t, c, "GET", a.URL()+"/metrics", "", "")
		problems = missing(publishedSeries, metrics)
		return len(problems) == 0
	})
	for _, p := range problems {
		t.Error(p)
	}
}

var sample = regexp.MustCompile(`(?m)^([a-zA-Z0-9_:]+)(?:\{(.*)\})? `)

// missing compares a list of series with metrics.
func missing(list, metrics string) (problems []string) {
	samples := map[string][]string{} // labels by name
	for _, s := range sample.FindAllStringSubmatch(metrics, -1) {
		samples[s[1]] = append(samples[s[1]], ","+s[2]+",")
	}
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
			continue
		case fields[0] == "-":
			name, reason, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), ": ")
			if len(samples[name]) > 0 || reason == "" {
				problems = append(problems, fmt.Sprintf("%s exists, or has no reason", name))
			}
			continue
		}
		if len(samples[fields[0]]) == 0 {
			problems = append(problems, fields[0]+" is missing")
			continue
		}
		for _, label := range fields[1:] {
			name, value, exact := strings.Cut(label, "=")
			want := "," + name + `="`
			if exact {
				want += value + `",`
			}
			if !slices.ContainsFunc(samples[fields[0]], func(labels string) bool { return strings.Contains(labels, want) }) {
				problems = append(problems, fmt.Sprintf("%s has no %s: %s", fields[0], label, samples[fields[0]][0]))
			}
		}
	}
	return problems
}
