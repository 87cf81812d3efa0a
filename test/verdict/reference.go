package verdict

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

// A Reference is a kube-apiserver with its known differences.
type Reference struct {
	Server
	known judge.Known
	sum   Counts
}

// StartReference starts a kube-apiserver with further flags and the admission plugins of an Offline, or uses that of a
// kubeconfig. It skips a test without either. known is the file of its known differences.
func StartReference(t *testing.T, kubeconfig, known string, flags ...string) *Reference {
	t.Helper()
	if kubeconfig == "" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	list, err := judge.ReadKnown(known)
	if err != nil {
		t.Fatal(err)
	}
	flags = append(flags, "--disable-admission-plugins="+strings.Join(app.NeedsOthers(), ","))
	// Stop, not the context of the test, ends the servers.
	p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{Reference: kubeconfig, Store: "memory", Dir: t.TempDir(), Theirs: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return &Reference{Server: Over(p.Theirs, list), known: list}
}

// Add adds the numbers of a comparison, and returns the sum.
func (r *Reference) Add(c Counts) Counts {
	s := &r.sum
	s.Asked, s.Updates, s.Accepted, s.Refused, s.Different = s.Asked+c.Asked, s.Updates+c.Updates, s.Accepted+c.Accepted, s.Refused+c.Refused, s.Different+c.Different
	return *s
}

// Report logs the numbers of all comparisons. It reports an error if almost all verdicts are the same, if there were few
// updates, and for a known difference that did not occur.
func (r *Reference) Report(t *testing.T) {
	t.Helper()
	for _, e := range r.known {
		t.Logf("known, %d times: %s", e.Seen, e.Because)
	}
	if t.Log(r.sum); r.sum.Asked == 0 || min(r.sum.Accepted, r.sum.Refused, r.sum.Updates) < r.sum.Asked/10 {
		t.Error("a tenth of the requests or more must be accepted, refused, and updates")
	}
	for _, e := range r.known.Gone(map[string]int{"verdict": r.sum.Asked}) {
		t.Errorf("a known difference did not occur: %s", e.Because)
	}
}

// Over returns the kube-apiserver of a client. An update gets the revision and the uid of the object there. The requests
// of known differences have the kind "verdict".
func Over(c *wire.Client, known judge.Known) Server {
	var mu sync.Mutex // for known
	return Server{
		tries: 20,
		Ask: func(ctx context.Context, q check.Question) (check.Answer, error) {
			if q.Method == http.MethodPut {
				object, _, _ := strings.Cut(q.Path, "?")
				stored, err := over(ctx, c, check.Question{Method: http.MethodGet, Path: object})
				if err != nil {
					return check.Answer{}, err
				}
				q.Body = identify(q.Body, stored.Body)
			}
			return over(ctx, c, q)
		},
		differ: func(q check.Question, offline, online check.Answer) string {
			var text strings.Builder
			mu.Lock()
			defer mu.Unlock()
			for _, d := range judge.Compare(normal(q, online), normal(q, offline)) {
				s := d.Signature(wire.Step{Kind: "verdict", Resource: resourceOf(q)})
				if known.Match(s) != nil {
					continue
				}
				fmt.Fprintf(&text, "%s: there %s\n\there %s\n%s\n", d.Place, d.Theirs, d.Ours, s)
			}
			return text.String()
		},
	}
}

// resourceOf returns PLURAL.GROUP of a request.
func resourceOf(q check.Question) string {
	r, err := http.NewRequest(q.Method, q.Path, nil)
	if err != nil {
		return ""
	}
	info := request.Parse(r)
	return schema.GroupResource{Group: info.Group, Resource: info.Resource}.String()
}

// most is the number of unknown fields that an error names.
const most = 100

var (
	manyFields = regexp.MustCompile(`(strict decoding error: )(?:[^"\\]|\\.)*`)
	user       = regexp.MustCompile(`(\\"DefaultUser\\":)(null|\d+)`)
)

// inOneForm returns a response without two parts of errors in which kube-apiserver is arbitrary. Of more than a hundred
// unknown fields it names the first ones in the order of the text. A quoted volume with two sources has the field of a
// feature gate in the second one.
func inOneForm(body []byte) []byte {
	if bytes.Count(body, []byte("unknown field")) >= most {
		body = manyFields.ReplaceAll(body, []byte("${1}many"))
	}
	return user.ReplaceAll(body, []byte("${1}null"))
}

// normal returns a response without values that depend on the server or on earlier requests.
func normal(q check.Question, a check.Answer) *judge.Normal {
	s := judge.NewServer(wire.Scope)
	s.Sent(wire.Step{Path: q.Path, Body: q.Body})
	h := http.Header{"Content-Type": {"application/json"}}
	for _, w := range a.Warnings {
		h.Add("Warning", w)
	}
	a.Body = inOneForm(a.Body)
	n := s.Normal(&wire.Answer{Code: a.Code, Header: h, Body: a.Body})
	if o, ok := n.Body.(map[string]any); ok && a.Code < http.StatusBadRequest {
		metadata := object.Metadata(o)
		if q.Method == http.MethodPut { // earlier writes have these
			delete(metadata, "creationTimestamp")
			delete(metadata, "managedFields")
		}
		switch o["kind"] {
		case "APIService": // a controller writes the status
			delete(o, "status")
		case "CustomResourceDefinition":
			delete(o, "status")
			delete(metadata, "managedFields")
		case "CertificateSigningRequest": // has the user of the request
			spec, _ := o["spec"].(map[string]any)
			for _, field := range []string{"extra", "groups", "uid", "username"} {
				delete(spec, field)
			}
		}
	}
	return n
}

func over(ctx context.Context, c *wire.Client, q check.Question) (check.Answer, error) {
	a := c.Do(ctx, wire.Step{Method: q.Method, Path: q.Path, Body: q.Body, Header: []wire.Field{
		{Name: "Content-Type", Value: q.ContentType}, {Name: "Accept", Value: "application/json"}, {Name: "User-Agent", Value: "anykind"},
	}})
	if a.Failed != "" {
		return check.Answer{}, errors.New(q.Path + ": " + a.Failed)
	}
	return check.Answer{Code: a.Code, Body: a.Body, Warnings: Warnings(a.Header)}, nil
}

// identify returns an object with the resourceVersion and the uid of a stored one, if it has its own.
func identify(body, stored []byte) []byte {
	now, _, err := codec.Decode(codec.JSON, body)
	was, _, failed := codec.Decode(codec.JSON, stored)
	if err != nil || failed != nil {
		return body
	}
	for _, name := range []string{"resourceVersion", "uid"} {
		if object.MetaString(now, name) != "" {
			object.SetMetaString(now, name, object.MetaString(was, name))
		}
	}
	return object.AppendJSON(nil, now)
}

// WriteFile writes a file, and the folders above it.
func WriteFile(t testing.TB, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
