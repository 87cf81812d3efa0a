package backup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/offline/apiclient"
)

// A Selection names objects of a file.
type Selection struct {
	// Objects are kinds, as KIND for all objects of a kind or as KIND/NAME. KIND is a plural, singular, kind
	// or short name, with the group if needed.
	Objects []string
	// Namespace has the objects of namespaced kinds; empty for those of all namespaces.
	Namespace string
	// AsOf is the time of the objects, in RFC 3339; empty for now. The server must keep a history.
	AsOf string
}

// path returns the path of an object, or of all objects for no name.
func (s Selection) path(k *apiclient.Kind, name string) string {
	path := k.Path(s.Namespace, name)
	if s.AsOf != "" {
		path += "?" + url.Values{"asOf": {s.AsOf}}.Encode()
	}
	return path
}

// Manager is the field manager of restored fields.
const Manager = "anykind-restore"

// Restore applies objects of one server to another one. It calls report for each, with "created",
// "configured" or "unchanged". After an error it continues with the next object. A dry run changes nothing.
func Restore(ctx context.Context, from, to apiclient.Server, s Selection, dryRun bool, report func(object, result string)) error {
	var errs []error
	err := s.each(ctx, from, func(k *apiclient.Kind, name string) error {
		objects, err := from.Objects(ctx, s.path(k, name))
		for _, o := range objects {
			result, err := apply(ctx, to, k, o, dryRun)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", k.Title(o), err))
				continue
			}
			report(k.Title(o), result)
		}
		return err
	})
	return errors.Join(append(errs, err)...)
}

// each calls visit for each kind, and with a name for a single object.
func (s Selection) each(ctx context.Context, from apiclient.Server, visit func(k *apiclient.Kind, name string) error) error {
	kinds, err := from.Kinds(ctx)
	if err != nil {
		return err
	}
	for _, word := range s.Objects {
		word, name, _ := strings.Cut(word, "/")
		k, err := from.Find(kinds, word)
		if err != nil {
			return err
		}
		if name != "" && k.Namespaced && s.Namespace == "" {
			return fmt.Errorf("%s/%s is namespaced: name the namespace with --namespace", word, name)
		}
		if err := visit(k, name); err != nil {
			return err
		}
	}
	return nil
}

// set are the fields of the metadata that a client sets.
var set = []string{"name", "namespace", "labels", "annotations", "finalizers"}

// apply applies an object.
func apply(ctx context.Context, to apiclient.Server, k *apiclient.Kind, o object.Tree, dryRun bool) (result string, err error) {
	path := k.Path(object.Namespace(o), object.Name(o))
	var before, after object.Tree
	if err := to.Get(ctx, path, &before); err != nil && !apiclient.Missing(err) {
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
	code, err := to.Do(ctx, apiclient.Request{
		Method: http.MethodPatch, Path: path + query, Type: "application/apply-patch+yaml", Body: object.AppendJSON(nil, wanted),
	}, &after)
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
