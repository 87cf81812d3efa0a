package rest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
)

// creates implements Creater with a function.
type creates func(ctx context.Context, c *resource.Change) (map[string]any, error)

func (f creates) Create(ctx context.Context, c *resource.Change) (map[string]any, error) {
	return f(ctx, c)
}

// review is a kind that answers with the user, and rejects an n below 0.
func review(dialect resource.Dialect) *resource.Definition {
	return resource.New(resource.Definition{
		Group: "test.example.com", Plural: "reviews", Singular: "review", Kind: "Review", ListKind: "ReviewList",
		Dialect: dialect, Verbs: []string{"create"}, StoragePrefix: "/registry/test.example.com/reviews/",
		Strategy: resource.Strategy{Validate: resource.Looking(func(obj, _ map[string]any) (errs field.ErrorList) {
			if spec, _ := obj["spec"].(map[string]any); spec["n"] == int64(-1) {
				errs = append(errs, field.Invalid(field.NewPath("spec", "n"), -1, "must not be negative"))
			}
			return errs
		})},
		Versions: []*resource.Version{{
			Name: "v1", Served: true, Storage: true, Schema: schemaOf("Review"),
			Creater: creates(func(ctx context.Context, c *resource.Change) (map[string]any, error) {
				c.Object["status"] = map[string]any{"a": fmt.Sprint(request.UserFrom(ctx).Name, " dry ", c.DryRun)}
				return c.Object, nil
			}),
		}},
	})
}

const reviews = "/apis/test.example.com/v1/reviews"

// asUser sends every request as a user.
func (s *server) asUser(name string) {
	next := s.handler
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &request.Request{Info: request.Parse(r), User: &request.User{Name: name}}
		next.ServeHTTP(w, r.WithContext(request.With(r.Context(), q)))
	})
}

// An object of a kind with a Creater is answered, and not stored.
func TestReview(t *testing.T) {
	s := newServerOf(t, review(resource.Custom))
	s.asUser("ann")
	const body = `{"apiVersion":"test.example.com/v1","kind":"Review","spec":{"n":1}}`
	s.post(reviews, body).is(201, `"spec":{"n":1}`, `"status":{"a":"ann dry false"}`)
	s.post(reviews+"?dryRun=All", body).is(201, `"status":{"a":"ann dry true"}`)
	s.post(reviews, strings.Replace(body, "1}", "-1}", 1)).message(422, `Review.test.example.com "" is invalid: spec.n: Invalid value: -1: must not be negative`)
	s.post(reviews, strings.Replace(body, "Review", "Other", 1)).is(422, "must be Review")
	for _, a := range []answer{s.get(reviews), s.get(reviews + "/a"), s.delete(reviews+"/a", "")} {
		a.is(405, `"reason":"MethodNotAllowed"`)
	}
	for accept, code := range map[string]int{
		"application/json;as=Table;v=v1;g=meta.k8s.io":                  406,
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json": 201,
		"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io":  201,
	} {
		s.accept(accept, "POST", reviews, "application/json", body).is(code)
	}
	s.nothingStored("/registry/test.example.com/")

	routed := newServerOf(t, review(resource.CompiledIn))
	routed.get(reviews).message(405, "the server does not allow this method on the requested resource")
	routed.get(reviews + "/a").is(404)
	local := review(resource.CompiledIn)
	local.Namespaced = true
	newServerOf(t, local).post(reviews, body).is(404) // they cannot be listed across namespaces
	routed.delete(reviews+"/a", "").is(404)           // objects have no paths, for any method
}

// A subresource may accept objects of another kind.
func TestCreateOnSubresource(t *testing.T) {
	order := resource.New(resource.Definition{
		Group: "other.example.com", Plural: "orders", Singular: "order", Kind: "Order", ListKind: "OrderList", Namespaced: true,
		Versions: []*resource.Version{{Name: "v2", Served: true, Storage: true, Schema: schemaOf("Order")}},
	})
	var got []resource.Change
	d := lead()
	d.Versions[0].Subresources = append(d.Versions[0].Subresources, resource.Subresource{
		Name: "order", Verbs: []string{"create"},
		Kind: schema.GroupVersionKind{Group: "other.example.com", Version: "v2", Kind: "Order"}, Definition: order,
		Validate: resource.Looking(func(obj, _ map[string]any) field.ErrorList {
			if obj["spec"] == nil {
				return field.ErrorList{field.Required(field.NewPath("spec"), "")}
			}
			return nil
		}),
		Creater: creates(func(_ context.Context, c *resource.Change) (map[string]any, error) {
			if c.Name == "missing" {
				return nil, status.NotFound(schema.GroupResource{Group: "test.example.com", Resource: "leads"}, c.Name)
			}
			got = append(got, *c)
			return nil, nil
		}),
	})
	s := newServerOf(t, d)
	const body = `{"apiVersion":"other.example.com/v2","kind":"Order","metadata":{"name":"o","uid":"u"},"spec":{"a":"b"}}`
	s.post(leads+"/a/order", body).is(201, `"kind":"Status"`, `"status":"Success"`, `"code":201`)
	s.post(leads+"/missing/order", body).message(404, `leads.test.example.com "missing" not found`)
	s.post(leads+"/a/order", strings.Replace(body, `"spec":{"a":"b"}`, `"x":1`, 1)).message(422, `Order.other.example.com "o" is invalid: spec: Required value`)
	s.post(leads+"/a/order", named("a")).message(400, "the API version in the data (test.example.com/v1) does not match the expected API version (other.example.com/v2)")
	s.get(leads+"/a/order").is(405, "MethodNotAllowed")
	if len(got) != 1 {
		t.Fatalf("asked %d times", len(got))
	}
	c := got[0]
	if c.Namespace != "default" || c.Name != "a" || c.Subresource != "order" || c.Old != nil || object.Name(c.Object) != "o" || object.UID(c.Object) != "u" {
		t.Errorf("got %+v", c)
	}
	s.nothingStored("/registry/test.example.com/")
}

// echo streams its attributes, then the request body line by line.
type echo struct{}

func (echo) Connect(_ context.Context, c resource.Connection) (http.Handler, error) {
	if c.Name == "missing" {
		return nil, status.NotFound(schema.GroupResource{Resource: "leads"}, c.Name)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		fmt.Fprintf(w, "%s %s/%s%s\n", r.Method, c.Namespace, c.Name, c.Path)
		_ = control.Flush()
		for lines := bufio.NewScanner(r.Body); lines.Scan(); _ = control.Flush() {
			fmt.Fprintln(w, lines.Text())
		}
	}), nil
}

// A subresource with a Connecter answers by itself, and the client gets its output immediately.
func TestConnect(t *testing.T) {
	d := lead()
	d.Versions[0].Subresources = append(d.Versions[0].Subresources,
		resource.Subresource{Name: "talk", Verbs: []string{"create", "get"}, Connecter: echo{}},
		resource.Subresource{Name: "door", Verbs: []string{"get", "update"}, Connecter: echo{}, PathsBelow: true})
	s := newServerOf(t, d)
	s.get(leads+"/a/talk").is(200, "GET default/a\n")
	s.get(leads+"/missing/talk").message(404, `leads "missing" not found`)
	s.put(leads+"/a/talk", "{}").is(405, "MethodNotAllowed")
	s.get(leads+"/a/talk/x").is(404, "not found")
	s.put(leads+"/a/door/x/y", "sent").is(200, "PUT default/a/x/y\nsent\n")

	ts := httptest.NewServer(s.handler)
	defer ts.Close()
	ours, theirs := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), "POST", ts.URL+leads+"/a/talk", ours)
	if err != nil {
		t.Fatal(err)
	}
	response, err := ts.Client().Do(r) // accepts gzip
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	expect := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
	expect("POST default/a\n")
	fmt.Fprint(theirs, "one\n") // while the answer is read
	expect("one\n")
	fmt.Fprint(theirs, "two\n")
	expect("two\n")
	_ = theirs.Close()
	if rest, err := io.ReadAll(response.Body); err != nil || len(rest) > 0 {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
}

// nothingStored checks that nothing is below a key.
func (s *server) nothingStored(prefix string) {
	s.t.Helper()
	page, err := s.backend.List(s.t.Context(), kv.Range{Prefix: prefix})
	if err != nil || len(page.Records) > 0 {
		s.t.Errorf("stored: %v, %v", page.Records, err)
	}
}
