package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/wire"
)

// A side is one of the servers, with the state of a case.
type side struct {
	client    *wire.Client
	judge     *judge.Server
	namespace string
}

func newSide(c *wire.Client, namespace string) *side {
	x := &side{client: c, judge: judge.NewServer(namespace), namespace: namespace}
	for _, made := range []string{"kube-api-access-"} { // prefixes of names that servers generate without a request
		x.judge.Sent(wire.Step{Body: []byte(`{"generateName":"` + made + `"}`)})
	}
	return x
}

// soon limits the wait for a server's caches: a kube-apiserver discovers new kinds of parameters twice
// a minute.
const soon = 45 * time.Second

// ask sends a request of a step, and repeats it until the response has s.Until.
func (x *side) ask(t *testing.T, s step, body any) *wire.Answer {
	t.Helper()
	request := x.request(t, s, body)
	a := x.client.Do(t.Context(), request)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for s.Until != "" && !has(a, s.Until) {
		select {
		case <-again.C:
			a = x.client.Do(t.Context(), request)
		case <-ctx.Done():
			t.Errorf("%s: %s never had %q, but %d %s", s.Do, x.client.Host(), s.Until, a.Code, a.Body)
			return a
		}
	}
	return a
}

// has reports whether a response has a status code or contains a text.
func has(a *wire.Answer, until string) bool {
	return fmt.Sprint(a.Code) == until || strings.Contains(string(a.Body), until) || strings.Contains(strings.Join(a.Header["Warning"], "\n"), until)
}

func (x *side) request(t *testing.T, s step, body any) wire.Step {
	t.Helper()
	method, path, ok := strings.Cut(s.Do, " ")
	if !ok {
		t.Fatalf("%q is no request", s.Do)
	}
	r := wire.Step{Method: method, Path: x.fill(t, path)}
	if s.As != "" {
		r.Header = append(r.Header, wire.Field{Name: "Impersonate-User", Value: x.fill(t, s.As)})
	}
	for _, group := range s.Groups {
		r.Header = append(r.Header, wire.Field{Name: "Impersonate-Group", Value: x.fill(t, group)})
	}
	if body == nil {
		return r
	}
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	text := name.ReplaceAllString(string(data), x.namespace)
	x.judge.Sent(wire.Step{Path: s.Do, Body: []byte(text)}) // replaced values are not the client's
	r.Body = []byte(x.fill(t, text))
	media := s.Media
	switch {
	case media != "":
	case method == http.MethodPatch:
		media = "application/merge-patch+json"
	default:
		media = "application/json"
	}
	r.Header = append(r.Header, wire.Field{Name: "Content-Type", Value: media})
	return r
}

var (
	name        = regexp.MustCompile(`\bNS\b`)
	placeholder = regexp.MustCompile(`<(uid|rv):([^>]+)>`)
)

// fill replaces the placeholders for values of the server.
func (x *side) fill(t *testing.T, text string) string {
	t.Helper()
	text = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(text) // JSON escapes them
	return placeholder.ReplaceAllStringFunc(name.ReplaceAllString(text, x.namespace), func(found string) string {
		m := placeholder.FindStringSubmatch(found)
		a := x.client.Do(t.Context(), wire.Step{Method: "GET", Path: m[2]})
		var object struct {
			Metadata struct{ UID, ResourceVersion string }
		}
		if err := json.Unmarshal(a.Body, &object); err != nil || a.Code != http.StatusOK {
			t.Fatalf("%s: %d %s %v", found, a.Code, a.Body, err)
		}
		return map[string]string{"uid": object.Metadata.UID, "rv": object.Metadata.ResourceVersion}[m[1]]
	})
}

// normal returns a response without expected differences.
func (x *side) normal(a *wire.Answer, s step) *judge.Normal {
	n := x.judge.Normal(a)
	for _, path := range s.Ignore {
		remove(n.Body, strings.Split(path, "."))
	}
	return n
}

// remove removes a field, also from each element of lists on its path.
func remove(v any, path []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			remove(e, path)
		}
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
			return
		}
		remove(v[path[0]], path[1:])
	}
}
