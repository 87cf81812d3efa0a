// Package pods sends the requests of requests.txt, about the life of pods, to a kube-apiserver and to
// anykind, and compares the responses.
//
// A request of the file is a method, a path and an optional media type; a body in YAML may follow. An
// empty line ends it. <uid:PATH> and <rv:PATH> stand for the uid and the resourceVersion of the object
// at a path. WATCH reads the events of a path since the start of its section. A section begins with a
// line in brackets and has a namespace of its own, for which NS stands. A fake kubelet for both
// servers listens at MACHINE:PORT, and on the same port of the loopback address. It is also the target
// of every other proxied connection.
package pods

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

var reference = flag.String("reference", "", "compare with a server that is started if it is \"start\"")

// controllers disables the controllers of anykind that kube-apiserver leaves to
// kube-controller-manager.
const controllers = "--controllers=-garbage-collector-controller,-namespace-controller,-serviceaccount-controller"

func TestPods(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	sections := read(t)
	// Stop, not the context of the test, ends the servers.
	p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{
		Reference: "start", Store: "memory", Dir: t.TempDir(), Ours: []string{controllers},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	fill := []string{"MACHINE", machine(t), "PORT", startKubelet(t)}
	total := 0
	for i, s := range sections {
		total += len(s.requests)
		t.Run(s.name, func(t *testing.T) { s.run(t, p, fmt.Sprintf("pods-%d", i), fill) })
	}
	t.Logf("%d requests", total)
}

// machine returns an address of this machine to which servers proxy, which excludes loopback
// addresses.
func machine(t *testing.T) string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address that others could reach")
	return ""
}

// startKubelet starts a fake kubelet. For other paths it responds with the request. It returns its
// port.
func startKubelet(t *testing.T) string {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Query().Get("tailLines"))
		switch {
		case r.Header.Get("Upgrade") != "" && (strings.HasSuffix(r.URL.Path, "/refuse") || r.URL.Query().Get("port") == "2"):
			refuse(w, r)
		case r.Header.Get("Upgrade") != "":
			talk(w, r)
		case code >= http.StatusBadRequest:
			http.Error(w, "no log", code)
		case r.URL.Query().Has("to"):
			w.Header().Set("Location", r.URL.Query().Get("to"))
			w.WriteHeader(http.StatusFound)
		default:
			body, _ := io.ReadAll(r.Body) // a body that fails to arrive is empty
			w.Header().Set("X-Said", r.Header.Get("X-Forwarded-Uri"))
			fmt.Fprintf(w, "%s %s %s %q\n", r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), body)
			if r.URL.Query().Has("follow") { // kube-apiserver drops a part that comes with the end, if the client has a WebSocket
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(500 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
		}
	}))
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	s.Listener.Close()
	s.Listener = l
	s.StartTLS()
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// A section is a sequence of requests.
type section struct {
	name     string
	requests []request
}

type request struct {
	line                int
	method, path, media string
	body                string
}

// read reads the file of requests.
func read(t *testing.T) (sections []section) {
	t.Helper()
	data, err := os.ReadFile("requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	var now *request
	for i, line := range strings.Split(string(data), "\n") {
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, "#"):
		case line == "":
			now = nil
		case strings.HasPrefix(line, "["):
			sections = append(sections, section{name: strings.Trim(line, "[]")})
		case now != nil:
			now.body += line + "\n"
		default:
			s := &sections[len(sections)-1]
			s.requests = append(s.requests, request{line: i + 1, method: fields[0], path: fields[1]})
			now = &s.requests[len(s.requests)-1]
			if len(fields) > 2 {
				now.media = fields[2]
			}
		}
	}
	return sections
}

// A side is one of the servers.
type side struct {
	client *wire.Client
	judge  *judge.Server
	since  string // the resourceVersion at the start
}

func (s section) run(t *testing.T, p *servers.Pair, namespace string, known []string) {
	fill := strings.NewReplacer(append(known[:len(known):len(known)], "NS", namespace)...).Replace
	sides := []*side{{client: p.Theirs}, {client: p.Ours}}
	for _, x := range sides {
		x.judge = judge.NewServer(namespace)
		x.judge.Sent(wire.Step{Body: []byte(`{"generateName":"kube-api-access-"}`)}) // a prefix of names that servers generate
		x.do(t, request{method: "POST", path: "/api/v1/namespaces", body: "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n"})
		x.do(t, request{method: "POST", path: "/api/v1/namespaces/" + namespace + "/serviceaccounts", body: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default}\n"})
		x.since = field(x.do(t, request{method: "GET", path: "/api/v1/namespaces/" + namespace}), "resourceVersion")
	}
	codes := map[int]int{}
	for _, r := range s.requests {
		r.path, r.body = fill(r.path), fill(r.body)
		theirs, ours := sides[0].normal(t, r), sides[1].normal(t, r)
		codes[theirs.Code]++
		for _, d := range judge.Compare(theirs, ours) {
			t.Errorf("requests.txt:%d: %s %s: %s\n\tKubernetes %s\n\tanykind    %s", r.line, r.method, r.path, d.Place, d.Theirs, d.Ours)
		}
	}
	t.Logf("of Kubernetes, how often each code: %v", codes)
}

// normal returns the normalized response to a request, without the managedFields of pods.
func (x *side) normal(t *testing.T, r request) *judge.Normal {
	t.Helper()
	n := x.judge.Normal(x.do(t, r))
	n.Body = without(n.Body)
	return n
}

// without removes the parts that are out of scope.
func without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if message, ok := v["message"].(string); ok {
			v["message"], _, _ = strings.Cut(message, "; there is no node agent to ask: ") // anykind reports it, too
		}
		if metadata, ok := v["metadata"].(map[string]any); ok && v["kind"] == "Pod" {
			delete(metadata, "managedFields")
		}
		for name, value := range v {
			v[name] = without(value)
		}
	case []any:
		for i := range v {
			v[i] = without(v[i])
		}
	}
	return v
}

var placeholder = regexp.MustCompile(`<(uid|rv):([^>]+)>`)

// do sends a request. The response to a watch is a list of its events.
func (x *side) do(t *testing.T, r request) *wire.Answer {
	t.Helper()
	fill := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(found string) string {
			m := placeholder.FindStringSubmatch(found)
			return field(x.do(t, request{method: "GET", path: m[2]}), map[string]string{"uid": "uid", "rv": "resourceVersion"}[m[1]])
		})
	}
	step := wire.Step{Method: r.method, Path: fill(r.path)}
	if r.method == "WATCH" {
		step.Method, step.Path = "GET", r.path+"?watch=1&timeoutSeconds=1&resourceVersion="+x.since
	}
	if r.body != "" {
		body, err := yaml.YAMLToJSON([]byte(fill(r.body)))
		if err != nil {
			t.Fatalf("requests.txt:%d: %v", r.line, err)
		}
		step.Body = body
		if r.media == "" {
			r.media = "application/json"
			if r.method == "PATCH" {
				r.media = "application/merge-patch+json"
			}
		}
		step.Header = []wire.Field{{Name: "Content-Type", Value: r.media}}
	}
	a := x.client.Do(t.Context(), step)
	if r.method == "WATCH" {
		events := strings.Split(strings.TrimSpace(string(a.Body)), "\n")
		a.Body = []byte(`{"kind":"Events","items":[` + strings.Join(events, ",") + `]}`)
	}
	return a
}

// field returns a metadata field of the object in a response.
func field(a *wire.Answer, name string) string {
	var object struct{ Metadata map[string]any }
	_ = json.Unmarshal(a.Body, &object) // other bodies have no field
	return fmt.Sprint(object.Metadata[name])
}
