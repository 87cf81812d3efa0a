package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// forgetPath is the page that takes an object out of the history. Its requests have no timeout: it rewrites
// parts of a file.
const forgetPath = "/history/forget"

// maxForget limits the body of a request.
const maxForget = 64 << 10

// A forgotten names an object.
type forgotten struct{ Group, Resource, Namespace, Name string }

// serveForget takes the earlier states of an object out of the history. forget gets the key of the object.
func serveForget(forget func(ctx context.Context, d *resource.Definition, key string) error, catalog *resource.Catalog) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !request.Allows(w, r, http.MethodPost) {
			return
		}
		var f forgotten
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForget))
		if err == nil {
			err = json.Unmarshal(body, &f)
		}
		if err != nil {
			request.Fail(w, r, status.BadRequest(`the body is no object such as {"group":"","resource":"secrets","namespace":"default","name":"x"}: %v`, err))
			return
		}
		d, key, err := f.key(catalog.Set())
		if err == nil {
			err = forget(r.Context(), d, key)
		}
		if err != nil {
			request.Fail(w, r, err)
			return
		}
		request.AnswerStatus(w, r, metav1.Status{
			Status:  metav1.StatusSuccess,
			Details: &metav1.StatusDetails{Name: f.Name, Group: f.Group, Kind: f.Resource},
		})
	}
}

// key returns the kind of the object, and its key in the store.
func (f *forgotten) key(set *resource.Set) (d *resource.Definition, key string, err error) {
	d = set.Lookup(f.Group, f.Resource)
	switch {
	case f.Resource == "":
		return nil, "", status.BadRequest("resource: Required value: the plural of the kind, such as secrets")
	case d == nil:
		return nil, "", status.NoSuchPath()
	case f.Name == "":
		return nil, "", status.BadRequest("name: Required value: the object to forget")
	case d.Namespaced && f.Namespace == "":
		return nil, "", status.BadRequest("namespace: Required value: %s are in namespaces", d.GroupResource())
	case !d.Namespaced && f.Namespace != "":
		return nil, "", status.BadRequest("namespace: Invalid value: %q: %s are in no namespace; leave it out", f.Namespace, d.GroupResource())
	}
	for _, part := range []struct{ field, value string }{{"namespace", f.Namespace}, {"name", f.Name}} {
		if problems := object.ValidatePathSegment(part.value, false); len(problems) > 0 {
			return nil, "", status.BadRequest("%s: Invalid value: %q: %s", part.field, part.value, problems[0])
		}
	}
	return d, d.Key(f.Namespace, f.Name), nil
}
