package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"runtime/debug"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// adminName is the user on both sides.
const adminName = "admin"

var adminGroups = []string{request.Masters, request.Authenticated}

// A Server is anykind's server, without a listener and without admission.
type Server struct {
	backend kv.Backend
	set     *resource.Set
	handler http.Handler // over the objects of the backend
	empty   http.Handler // over a backend in which every name is free
	stored  map[string]stored
	dual    *Server // dual-stack
}

// stored is the record at a key of the backend.
type stored struct {
	object   Object
	revision int64
}

// NewServer returns a Server that runs until the end of the test.
func NewServer(t testing.TB, gates *gate.Set) *Server {
	s := newServer(t, gates, "10.0.0.0/24")
	s.dual = newServer(t, gates, "10.0.0.0/24", "fd00::/112")
	return s
}

func newServer(t testing.TB, gates *gate.Set, ranges ...string) *Server {
	s := &Server{backend: memkv.New(memkv.Options{}), stored: map[string]stored{}}
	s.set, s.handler = over(t, s.backend, gates, ranges)
	_, s.empty = over(t, memkv.New(memkv.Options{}), gates, ranges)
	return s
}

// of returns the server of a kind.
func (s *Server) of(k *Kind) *Server {
	if k.dual {
		return s.dual
	}
	return s
}

// over creates the kinds, and a handler of those that a backend has.
func over(t testing.TB, backend kv.Backend, gates *gate.Set, ranges []string) (*resource.Set, http.Handler) {
	kinds := builtin.Dependencies{AllowPrivileged: true, Authorizer: authz.AlwaysAllow{}, Gates: gates}.Definitions()
	if err := (builtin.RuntimeConfig{"api/all": "true"}).Apply(kinds, gates); err != nil {
		t.Fatal(err)
	}
	set := resource.NewSet(kinds)
	cache := watchcache.New(backend, watchcache.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	cidrs, err := json.Marshal(ranges)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		set.Lookup("networking.k8s.io", "servicecidrs").Key("", "kubernetes"): `{"apiVersion":"networking.k8s.io/v1","kind":"ServiceCIDR","metadata":{"name":"kubernetes","uid":"u"},"spec":{"cidrs":` + string(cidrs) + `},"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`,
		set.Lookup("", "namespaces").Key("", namespaceName):                   `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + namespaceName + `","uid":"n"}}`,
	} {
		if _, err := backend.Commit(t.Context(), kv.Write{Key: key, Value: []byte(value), Expect: kv.Absent}); err != nil {
			t.Fatal(err)
		}
	}
	var prefixes []netip.Prefix
	for _, r := range ranges {
		prefixes = append(prefixes, netip.MustParsePrefix(r))
	}
	builtin.GiveAddresses(set, cache, prefixes, allocation.PortRange{Base: 30000, Size: 2768}, nil)
	var catalog resource.Catalog
	catalog.Swap(set)
	return set, rest.New(registry.New(backend, cache, registry.Options{Gates: gates}), &catalog, rest.Options{})
}

// Serves reports whether we serve a kind and a subresource of it.
func (s *Server) Serves(k *Kind, subresource string) bool {
	d := s.set.Lookup(k.Group, k.Plural)
	if d == nil {
		return false
	}
	v := d.Version(k.Version)
	return v != nil && v.Served && (subresource == "" || v.Subresource(subresource) != nil)
}

// store puts an unmodified object into the store, in place of another of that name, and returns its
// revision.
func (s *Server) store(k *Kind, o Object) (string, error) {
	d := s.set.Lookup(k.Group, k.Plural)
	metadata := maps.Clone(o["metadata"].(Object))
	namespace, _ := metadata["namespace"].(string)
	key := d.Key(namespace, nameOf(o))
	was := s.stored[key]
	if reflect.ValueOf(was.object).Pointer() != reflect.ValueOf(o).Pointer() {
		delete(metadata, "resourceVersion")
		written := maps.Clone(o)
		written["metadata"] = metadata
		data, err := k.encode(written, d.StorageVersion().Name)
		if err != nil {
			return "", err
		}
		was.object = o
		if was.revision, err = s.backend.Commit(context.Background(), kv.Write{Key: key, Value: data, Expect: was.revision}); err != nil {
			return "", err
		}
		s.stored[key] = was
	}
	return strconv.FormatInt(was.revision, 10), nil
}

// encode encodes an object in a version of the kind.
func (k *Kind) encode(o Object, version string) ([]byte, error) {
	if version == k.Version {
		return json.Marshal(o)
	}
	obj, err := k.decode(o)
	if err != nil {
		return nil, err
	}
	encoder := k.codecs.EncoderForVersion(k.serializer(runtime.ContentTypeJSON), schema.GroupVersion{Group: k.Group, Version: version})
	return runtime.Encode(encoder, obj)
}

// Do returns our outcome.
func (s *Server) Do(c Case) (out Outcome) {
	s = s.of(c.Kind)
	handler, method, path, sent := s.empty, http.MethodPost, c.Kind.path("", ""), c.New
	if c.Old != nil {
		handler, method, path = s.handler, http.MethodPut, c.Kind.path(nameOf(c.Old), c.Subresource)
		revision, err := s.store(c.Kind, c.Old)
		if err != nil {
			return Outcome{Message: err.Error()}
		}
		if m, _ := sent["metadata"].(Object); m["resourceVersion"] == oldRevision {
			sent = set(sent, []any{"metadata", "resourceVersion"}, revision).(Object)
		}
	}
	data, err := json.Marshal(sent)
	if err != nil {
		return Outcome{Message: err.Error()}
	}
	query := url.Values{"dryRun": {"All"}, "fieldValidation": {"Ignore"}}
	w := ask(handler, method, path+"?"+query.Encode(), "", data, &out)
	if w == nil {
		return out
	}
	return readOutcome(w)
}

// ask sends a request. A panic becomes the outcome.
func ask(handler http.Handler, method, target, accept string, body []byte, out *Outcome) (w *httptest.ResponseRecorder) {
	defer func() {
		if p := recover(); p != nil {
			*out, w = Outcome{Code: http.StatusInternalServerError, Message: fmt.Sprintf("panic: %v\n%s", p, debug.Stack())}, nil
		}
	}()
	r := httptest.NewRequest(method, target, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	r = r.WithContext(request.With(r.Context(), &request.Request{
		Info: request.Parse(r), User: &request.User{Name: adminName, Groups: adminGroups},
	}))
	w = httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}
