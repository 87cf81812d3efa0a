package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

// A Server is an API server with a client for it.
type Server struct {
	Client *http.Client
	URL    string
}

// A Selection names objects of a file.
type Selection struct {
	// Objects are kinds, as KIND for all objects of a kind or as KIND/NAME. KIND is a plural, singular, kind
	// or short name, with the group if needed.
	Objects []string
	// Namespace has the objects of namespaced kinds; empty for those of all namespaces.
	Namespace string
}

// Manager is the field manager of restored fields.
const Manager = "anykind-restore"

// Restore applies objects of one server to another one. It calls report for each, with "created",
// "configured" or "unchanged". After an error it continues with the next object. A dry run changes nothing.
func Restore(ctx context.Context, from, to Server, s Selection, dryRun bool, report func(object, result string)) error {
	var errs []error
	err := s.each(ctx, from, func(k *kind, name string) error {
		objects, err := from.objects(ctx, k, s.Namespace, name)
		for _, o := range objects {
			result, err := to.apply(ctx, k, o, dryRun)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", k.title(o), err))
				continue
			}
			report(k.title(o), result)
		}
		return err
	})
	return errors.Join(append(errs, err)...)
}

// each calls visit for each kind, and with a name for a single object.
func (s Selection) each(ctx context.Context, from Server, visit func(k *kind, name string) error) error {
	kinds, err := from.kinds(ctx)
	if err != nil {
		return err
	}
	for _, word := range s.Objects {
		word, name, _ := strings.Cut(word, "/")
		k, err := find(kinds, word)
		if err != nil {
			return err
		}
		if name != "" && k.namespaced && s.Namespace == "" {
			return fmt.Errorf("%s/%s is namespaced: name the namespace with --namespace", word, name)
		}
		if err := visit(k, name); err != nil {
			return err
		}
	}
	return nil
}

// A kind of objects, in its preferred version.
type kind struct {
	schema.GroupVersionResource
	names      []string
	namespaced bool
}

func (k *kind) is(word string) bool {
	return slices.ContainsFunc(k.names, func(name string) bool {
		return strings.EqualFold(word, name) || k.Group != "" && strings.EqualFold(word, name+"."+k.Group)
	})
}

// title names an object as kubectl does.
func (k *kind) title(o object.Tree) string {
	name := k.GroupResource().String() + "/" + object.Name(o)
	if k.namespaced {
		return name + " in " + object.Namespace(o)
	}
	return name
}

// path returns the path of an object, or of all objects for no name.
func (k *kind) path(namespace, name string) string {
	path := "/api/" + k.Version
	if k.Group != "" {
		path = "/apis/" + k.Group + "/" + k.Version
	}
	if k.namespaced && namespace != "" {
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	path += "/" + k.Resource
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	return path
}

func find(kinds []kind, word string) (*kind, error) {
	var found []*kind
	var names []string
	for i := range kinds {
		if kinds[i].is(word) {
			found, names = append(found, &kinds[i]), append(names, kinds[i].GroupResource().String())
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("the file has no kind %q", word)
	case len(found) > 1 && found[0].Group != "": // the core group comes first
		return nil, fmt.Errorf("%q is ambiguous: choose one of %s", word, strings.Join(names, ", "))
	}
	return found[0], nil
}

// kinds returns all kinds that can be listed.
func (s Server) kinds(ctx context.Context) (all []kind, err error) {
	for _, root := range []string{"/api", "/apis"} {
		var groups apidiscovery.APIGroupDiscoveryList
		if _, err := s.do(ctx, http.MethodGet, root, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", nil, &groups); err != nil {
			return nil, err
		}
		for _, g := range groups.Items {
			seen := map[string]bool{}
			for _, v := range g.Versions {
				for _, r := range v.Resources {
					if seen[r.Resource] || !slices.Contains(r.Verbs, "list") {
						continue
					}
					seen[r.Resource] = true
					all = append(all, kind{
						schema.GroupVersionResource{Group: g.Name, Version: v.Version, Resource: r.Resource},
						append([]string{r.Resource, r.SingularResource, r.ResponseKind.Kind}, r.ShortNames...),
						r.Scope == apidiscovery.ScopeNamespace,
					})
				}
			}
		}
	}
	return all, nil
}

// objects returns an object, or all objects for no name.
func (s Server) objects(ctx context.Context, k *kind, namespace, name string) ([]object.Tree, error) {
	if name != "" {
		var one object.Tree
		if _, err := s.do(ctx, http.MethodGet, k.path(namespace, name), "", nil, &one); err != nil {
			return nil, err
		}
		return []object.Tree{one}, nil
	}
	var list struct {
		Kind       string        `json:"kind"`
		APIVersion string        `json:"apiVersion"`
		Items      []object.Tree `json:"items"`
	}
	_, err := s.do(ctx, http.MethodGet, k.path(namespace, ""), "", nil, &list)
	for _, o := range list.Items { // items of lists of built-in kinds have no type
		if o["kind"] == nil {
			o["kind"], o["apiVersion"] = strings.TrimSuffix(list.Kind, "List"), list.APIVersion
		}
	}
	return list.Items, err
}

// set are the fields of the metadata that a client sets.
var set = []string{"name", "namespace", "labels", "annotations", "finalizers"}

// apply applies an object.
func (s Server) apply(ctx context.Context, k *kind, o object.Tree, dryRun bool) (result string, err error) {
	path := k.path(object.Namespace(o), object.Name(o))
	var before, after object.Tree
	if _, err := s.do(ctx, http.MethodGet, path, "", nil, &before); err != nil && !missing(err) {
		return "", err
	}
	wanted := object.Tree{}
	for field, value := range o {
		if field != "status" {
			wanted[field] = value
		}
	}
	metadata, kept := object.Tree{}, object.Metadata(o)
	for _, field := range set {
		if value, ok := kept[field]; ok {
			metadata[field] = value
		}
	}
	wanted["metadata"] = metadata
	query := "?force=true&fieldManager=" + Manager
	if dryRun {
		query += "&dryRun=All"
	}
	code, err := s.do(ctx, http.MethodPatch, path+query, "", object.AppendJSON(nil, wanted), &after)
	switch {
	case err != nil:
		return "", err
	case code == http.StatusCreated:
		return "created", nil
	case same(before, after):
		return "unchanged", nil
	}
	return "configured", nil
}

// same reports whether two states of an object differ at most in their bookkeeping.
func same(a, b object.Tree) bool {
	for _, o := range []object.Tree{a, b} {
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			delete(object.Metadata(o), field)
		}
	}
	return reflect.DeepEqual(a, b)
}

// A refusal is an answer with an error.
type refusal struct {
	code int
	error
}

func missing(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.code == http.StatusNotFound
}

// do sends a request. A body is applied.
func (s Server) do(ctx context.Context, method, path, accept string, body []byte, out any) (code int, err error) {
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if accept == "" {
		accept = "application/json"
	}
	r.Header.Set("Accept", accept)
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	answer, err := s.Client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return answer.StatusCode, &refusal{answer.StatusCode, refused(answer)}
	}
	data, err := io.ReadAll(answer.Body)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, out)
	}
	return answer.StatusCode, err
}
