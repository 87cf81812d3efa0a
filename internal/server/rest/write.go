package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/registry/apply"
)

// A writeRequest is a create, update or patch with its options.
type writeRequest struct {
	*call
	view    *codec.View
	options registry.WriteOptions
	fields  *apply.Fields
	// manager and validation are the client's options, with defaults.
	manager, validation string
}

// begin determines the view of the answer and reads the body. Both precede the options.
func (r *call) begin() (*codec.View, error) {
	view, err := r.view(codec.One)
	if err != nil {
		return nil, err
	}
	_, err = r.readBody()
	return view, err
}

// newWrite returns a writeRequest with the options that all writes have.
func newWrite(r *call, view *codec.View, dryRun []string, fieldManager, fieldValidation string) *writeRequest {
	d, v := r.kind()
	manager := cmp.Or(fieldManager, apply.DefaultManager(r.UserAgent()))
	fields := apply.FieldsWith(r.gates, d, v, r.target.Subresource)
	return &writeRequest{
		call:       r,
		view:       view,
		fields:     fields,
		manager:    manager,
		validation: cmp.Or(fieldValidation, metav1.FieldValidationWarn),
		options: registry.WriteOptions{
			DryRun:          len(dryRun) > 0,
			Warn:            r.warned.add,
			FieldManager:    fieldManager,
			Manager:         manager,
			FieldValidation: fieldValidation,
			Fits:            func() error { return r.fits(view, codec.One) },
			Account: func(ctx context.Context, old, t object.Tree) object.Tree {
				return fields.Update(ctx, old, t, manager)
			},
		},
	}
}

// decode decodes the object in the body. Each call returns a new one.
func (w *writeRequest) decode() (object.Tree, error) {
	x := w.expect()
	media, err := x.Offer.ContentType(w.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	body, err := w.readBody()
	if err != nil {
		return nil, err
	}
	t, duplicates, err := codec.DecodeObject(media, body, x)
	if err != nil {
		return nil, w.misversioned(t, duplicates, err)
	}
	t, unknown, err := w.completed(t)
	if err != nil {
		return nil, err
	}
	if len(unknown) > 1 {
		if problems := x.Problems(media, body); problems != nil {
			duplicates, unknown = problems, nil
		}
	}
	if err := w.reportFields(duplicates, unknown); err != nil {
		return nil, err
	}
	w.auditObject(t)
	return t, nil
}

// misversioned returns the error of an object without a Go type in another version. Its fields are checked first; in an
// undefined version, every field is unknown.
func (w *writeRequest) misversioned(t object.Tree, duplicates []string, err error) error {
	if t == nil {
		return err
	}
	d, v := w.kind()
	gv, _ := schema.ParseGroupVersion(object.APIVersion(t))
	gvk := gv.WithKind(object.Kind(t))
	var unknown []string
	known := d.Version(gv.Version)
	if known == nil || gvk != d.GroupVersionKind(known.Name) {
		if gvk.GroupKind() == d.GroupVersionKind(v.Name).GroupKind() && !v.Schema.Model().Keeps {
			unknown = slices.Sorted(maps.Keys(t))
			unknown = slices.DeleteFunc(unknown, func(name string) bool { return slices.Contains(commonFields, name) })
		}
		known, t = v, object.Tree{"metadata": t["metadata"]}
	}
	_, more, wrong := known.Schema.Complete(t)
	if wrong == nil {
		wrong = w.reportFields(duplicates, append(unknown, more...))
	}
	return cmp.Or(named(wrong, gvk), err)
}

// commonFields are the fields of all objects.
var commonFields = []string{"apiVersion", "kind", "metadata"}

// named puts the kind that the object claims into a decoding error.
func named(err error, claimed schema.GroupVersionKind) error {
	var wrong *status.Undecodable
	if !errors.As(err, &wrong) {
		return err
	}
	named := *wrong
	named.Kind = claimed
	return &named
}

// complete completes an object of the client by the schema, and reports unknown fields as
// fieldValidation demands.
func (w *writeRequest) complete(t object.Tree, duplicates []string) (object.Tree, error) {
	t, unknown, err := w.completed(t)
	if err != nil {
		return nil, err
	}
	return t, w.reportFields(duplicates, unknown)
}

// completed completes an object by the schema, and returns its unknown fields.
func (w *writeRequest) completed(t object.Tree) (out object.Tree, unknown []string, err error) {
	d, v := w.kind()
	metadata, _ := t["metadata"].(object.Tree) // the schema rejects other types
	list, ok := metadata["managedFields"].([]any)
	claimed := d.GroupVersionKind(v.Name)
	claimed.Kind = object.Kind(t) // kinds are compared later
	out, unknown, err = v.Schema.Complete(t)
	switch {
	case err != nil && v.HasGoType():
		return nil, nil, err
	case err != nil:
		return nil, nil, named(err, claimed)
	}
	switch empty := ok && len(list) == 0; {
	case empty && v.HasGoType(): // an empty list has a meaning, but a Go type omits it
		object.Metadata(out)["managedFields"] = list
	case empty: // without a Go type an empty list has no meaning
		delete(object.Metadata(out), "managedFields")
	}
	return out, unknown, nil
}

// applied completes the result of an apply. Its fields are known, so only defaults are missing. A
// null that the schema does not allow stays, so that validation reports it, unless the Dialect
// differs. An unchanged object gets no defaults that only this version has.
func (w *writeRequest) applied(t object.Tree, same bool, duplicates []string) (object.Tree, error) {
	d, v := w.kind()
	if s, ok := v.Schema.(resource.FillingSchema); ok && !d.Dialect.CompletesApplied {
		if !same {
			s.Fill(t)
		}
		return t, w.reportFields(duplicates, nil)
	}
	t, _, err := w.completed(t)
	if err != nil {
		return nil, err
	}
	return t, w.reportFields(duplicates, nil)
}

// quoted quotes a path. The path is escaped only where Kubernetes decodes JSON into a Go type.
func (w *writeRequest) quoted(path string) string {
	if _, v := w.kind(); v.HasGoType() && w.patchType() != types.StrategicMergePatchType {
		return strconv.Quote(path)
	}
	return `"` + path + `"`
}

// reportFields reports duplicate and unknown fields as fieldValidation demands. It warns even if
// the write fails: such a field may be the cause.
func (w *writeRequest) reportFields(duplicates, unknown []string) error {
	var problems []string
	for _, path := range unknown {
		problems = append(problems, `unknown field `+w.quoted(path))
	}
	switch problems = append(duplicates[:len(duplicates):len(duplicates)], problems...); {
	case len(problems) == 0:
	case w.validation == metav1.FieldValidationStrict:
		d, v := w.kind()
		return codec.StrictError(d.GroupVersionKind(v.Name), problems)
	case w.validation == metav1.FieldValidationWarn:
		for _, p := range codec.Warnings(problems) {
			w.warned.add(p)
		}
	}
	return nil
}

func (h *Handler) create(r *call) error {
	view, err := r.view(codec.One)
	if err != nil {
		return err
	}
	if _, err := codec.OfferTo(r.Request).ContentType(r.Header.Get("Content-Type")); err != nil {
		return err
	}
	if _, err := r.readBody(); err != nil {
		return err
	}
	o, err := queryOptions(r, metav1.Convert_url_Values_To_v1_CreateOptions)
	if err != nil {
		return err
	}
	if err := invalidOptions("CreateOptions", validation.ValidateCreateOptions(&o)); err != nil {
		return err
	}
	w := newWrite(r, view, o.DryRun, o.FieldManager, o.FieldValidation)
	change := func(object.Tree) (object.Tree, error) {
		t, err := w.decode()
		if err != nil {
			return nil, err
		}
		registry.DropDuplicateOwners(t, "", r.warned.add)
		if r.target.Subresource == "" { // or, on a subresource, the object
			registry.ClearSystemMetadata(t)
		}
		return t, nil
	}
	if r.target.Creater() != nil {
		return h.answerCreate(w, change)
	}
	result, err := h.registry.Create(r.Context(), r.target, change, w.options)
	if err != nil {
		return err
	}
	return h.respondResult(r, w.view, http.StatusCreated, result)
}

func (h *Handler) update(r *call) error {
	if r.target.Name == "" {
		return status.BadRequest("name must be provided")
	}
	view, err := r.begin()
	if err != nil {
		return err
	}
	o, err := queryOptions(r, metav1.Convert_url_Values_To_v1_UpdateOptions)
	if err != nil {
		return err
	}
	if err := invalidOptions("UpdateOptions", validation.ValidateUpdateOptions(&o)); err != nil {
		return err
	}
	w := newWrite(r, view, o.DryRun, o.FieldManager, o.FieldValidation)
	// A body that does not decode, or that has another name, is rejected before the object is
	// looked up. Warnings come first too.
	t, err := w.decode()
	if err != nil {
		return err
	}
	if err := w.target.Match(t); err != nil {
		return err
	}
	registry.DropDuplicateOwners(t, "", r.warned.add)
	return h.modify(w, func(old object.Tree) (object.Tree, error) {
		sent := t
		if t = nil; sent == nil { // the registry changed the last one
			var err error
			if sent, err = w.decode(); err != nil {
				return nil, err
			}
			registry.DropDuplicateOwners(sent, "", r.warned.add)
		}
		if uid := object.UID(sent); uid != "" && uid != object.UID(old) {
			return nil, w.anotherUID(uid, object.UID(old))
		}
		return sent, nil
	})
}

// anotherUID rejects an update with the uid of another object, or of one that does not exist.
// Kubernetes names the storage key, which for a dry run has another form.
func (w *writeRequest) anotherUID(sent, stored string) error {
	d := w.target.Definition
	key := d.Key(w.target.Namespace, w.target.Name)
	if w.options.DryRun {
		key = "/" + strings.TrimPrefix(key, resource.Root)
	}
	return status.Conflict(d.GroupResource(), w.target.Name,
		fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %v, UID in object meta: %v",
			key, sent, stored))
}

func (h *Handler) patch(r *call) error {
	patchType := r.patchType()
	if err := r.checkPatchType(patchType); err != nil {
		return err
	}
	if r.target.Name == "" {
		return status.BadRequest("name must be provided")
	}
	view, err := r.begin()
	if err != nil {
		return err
	}
	o, err := queryOptions(r, metav1.Convert_url_Values_To_v1_PatchOptions)
	if err != nil {
		return err
	}
	if err := invalidOptions("PatchOptions", validation.ValidatePatchOptions(&o, patchType)); err != nil {
		return err
	}
	w := newWrite(r, view, o.DryRun, o.FieldManager, o.FieldValidation)
	w.auditPatch(patchType)
	if media, ok := applyMedia[patchType]; ok {
		return h.apply(w, media, o.Force != nil && *o.Force)
	}
	p, wrong := w.decodePatch(patchType)
	if wrong != nil && !json.Valid(r.body) {
		return wrong
	}
	var patched object.Tree
	w.options.Complete = func(t object.Tree) (object.Tree, error) { return w.completePatched(p, patched, t) }
	return h.modify(w, func(old object.Tree) (object.Tree, error) {
		if old == nil {
			return nil, status.NotFound(r.target.Definition.GroupResource(), r.target.Name)
		}
		if wrong != nil { // as Kubernetes does not parse the JSON without an object
			return nil, wrong
		}
		patched = old
		return p.Apply(old)
	})
}

// apply performs a server-side apply: the body has all fields that a manager wants. Fields that
// it applied before and omits now are removed.
func (h *Handler) apply(w *writeRequest, media codec.Media, force bool) error {
	body, err := w.readBody()
	if err != nil {
		return err
	}
	wanted, duplicates, err := codec.Decode(media, body)
	switch {
	case err == nil:
	case media == codec.CBOR:
		return status.BadRequest("error decoding patch: %v", err)
	case errors.As(err, &codec.YAMLError{}) && bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")): // first parsed as JSON
		return status.BadRequest("error decoding patch: error converting YAML to JSON: %v", err)
	case errors.As(err, &codec.YAMLError{}):
		return status.BadRequest("error encoding patch: %v", err)
	default:
		return status.BadRequest("error decoding patch: error unmarshaling JSON: while decoding JSON: %v", err)
	}
	same := false // the apply changes no field
	w.options.CreateMissing, w.options.Applied = true, true
	w.options.Account = nil // Apply updates managedFields itself
	w.options.Complete = func(t object.Tree) (object.Tree, error) {
		if len(duplicates) > 0 && w.validation == metav1.FieldValidationStrict {
			return nil, repeated(media, duplicates)
		}
		if err := w.target.Match(t); err != nil {
			return nil, err
		}
		return w.applied(t, same, duplicates)
	}
	return h.modify(w, func(old object.Tree) (object.Tree, error) {
		t, err := w.fields.Apply(w.Context(), old, wanted, w.manager, force)
		metadata, _ := wanted["metadata"].(object.Tree)
		_, manages := metadata["managedFields"] // Kubernetes counts even a null as a change
		same = err == nil && old != nil && !manages && equalBesidesManagers(old, t)
		return t, err
	})
}

// equalBesidesManagers reports whether two objects are equal except for managedFields.
func equalBesidesManagers(a, b object.Tree) bool {
	without := func(t object.Tree) object.Tree {
		t = maps.Clone(t)
		metadata, _ := t["metadata"].(object.Tree)
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		t["metadata"] = metadata
		return t
	}
	return object.Equal(without(a), without(b))
}

// repeated returns the error for duplicate fields in an apply. Its body is parsed as YAML, even
// if it is JSON.
func repeated(media codec.Media, duplicates []string) error {
	message := strings.Join(duplicates, ", ")
	if media == codec.YAML {
		message = "error converting YAML to JSON: " + message
	}
	return status.BadRequest("error strict decoding patch: %s", message)
}

func (w *writeRequest) decodePatch(patchType types.PatchType) (*apply.Patch, error) {
	body, err := w.readBody()
	if err != nil {
		return nil, err
	}
	switch patchType {
	case types.JSONPatchType:
		p, err := apply.JSON(body)
		var refused *status.Error
		switch ignores := w.validation == metav1.FieldValidationIgnore; {
		case err == nil && !ignores:
			err = p.Wrong
		case ignores && errors.As(err, &refused): // Kubernetes' other decoder has other messages
			words := strings.NewReplacer("error decoding patch: ", "", "[]handlers.jsonPatchOp", "jsonpatch.Patch", "handlers.jsonPatchOp", "jsonpatch.Operation")
			refused.ErrStatus.Message = words.Replace(refused.ErrStatus.Message)
		}
		return p, err
	case types.MergePatchType:
		return apply.Merge(body)
	default:
		_, v := w.kind()
		return apply.Strategic(body, v.New())
	}
}

func (h *Handler) modify(w *writeRequest, change registry.Change) error {
	result, err := h.registry.Modify(w.Context(), w.target, change, w.options)
	if err != nil {
		return err
	}
	code := http.StatusOK
	if result.Created {
		code = http.StatusCreated
	}
	return h.respondResult(w.call, w.view, code, result)
}
