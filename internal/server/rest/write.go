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
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/registry/apply"
)

// A writeRequest is a create, update or patch with its options read.
type writeRequest struct {
	*call
	view    *codec.View
	options registry.WriteOptions
	fields  *apply.Fields
	// manager and validation are the options of the client, with their defaults.
	manager, validation string
}

// begin finds out how an update is to be answered, and reads its body. Both come before
// anybody looks at the options.
func (r *call) begin() (*codec.View, error) {
	view, err := r.view(codec.One)
	if err != nil {
		return nil, err
	}
	_, err = r.readBody()
	return view, err
}

// newWrite takes the options that all writes have.
func newWrite(r *call, view *codec.View, dryRun []string, fieldManager, fieldValidation string) *writeRequest {
	d, v := r.kind()
	manager := cmp.Or(fieldManager, managerOf(r.UserAgent()))
	fields := apply.FieldsOf(d, v, r.target.Subresource)
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
			FieldValidation: fieldValidation,
			Fits:            func() error { return r.fits(view, codec.One) },
			Account: func(ctx context.Context, old, t object.Tree) object.Tree {
				return fields.Update(ctx, old, t, manager)
			},
		},
	}
}

// decode reads the object in the body of the request. Each call returns one of
// its own.
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
		w.warnOfMetadata(t, duplicates)
		return nil, err
	}
	claimed := object.Kind(t)
	t, err = w.complete(t, duplicates)
	return t, w.named(err, claimed)
}

// warnOfMetadata warns of duplicate fields, and of unknown fields in the metadata, of an object that is refused
// because of its version.
func (w *writeRequest) warnOfMetadata(t object.Tree, duplicates []string) {
	if t == nil || w.validation != metav1.FieldValidationWarn {
		return
	}
	_, v := w.kind()
	if _, unknown, err := v.Schema.Complete(object.Tree{"metadata": t["metadata"]}); err == nil {
		_ = w.reportFields(duplicates, unknown) // only strict validation refuses them
	}
}

// named has an error of an object that cannot be decoded tell the kind that the object claims, which is
// compared later. Strict decoding tells the kind of the path.
func (w *writeRequest) named(err error, claimed string) error {
	d, v := w.kind()
	var refused *status.Error
	if claimed == d.Kind || v.HasGoType() || !errors.As(err, &refused) {
		return err
	}
	if rest, ok := strings.CutPrefix(refused.ErrStatus.Message, d.Kind+" in version "); ok && !strings.Contains(rest, "strict decoding error: ") {
		return status.BadRequest("%s in version %s", claimed, rest)
	}
	return err
}

// complete makes an object that came from the client one of the schema, and
// deals with the fields that are none of the schema's as the client asked.
func (w *writeRequest) complete(t object.Tree, duplicates []string) (object.Tree, error) {
	_, v := w.kind()
	metadata, _ := t["metadata"].(object.Tree) // which the schema refuses if it is no object
	list, ok := metadata["managedFields"].([]any)
	t, unknown, err := v.Schema.Complete(t)
	if err != nil {
		return nil, err
	}
	switch empty := ok && len(list) == 0; {
	case empty && v.HasGoType(): // which says something, and which a Go type does not write
		object.Metadata(t)["managedFields"] = list
	case empty: // which says nothing of an object without a Go type
		delete(object.Metadata(t), "managedFields")
	}
	return t, w.reportFields(duplicates, unknown)
}

// applied makes the result of an apply one of the schema. Its fields are known to
// be, so that only defaults are missing; a null that nothing allows stays, for
// whoever applied it is to be told, unless the Dialect says otherwise. An object that is the
// same as before gets no default that only this version has.
func (w *writeRequest) applied(t object.Tree, same bool, duplicates []string) (object.Tree, error) {
	d, v := w.kind()
	if s, ok := v.Schema.(resource.FillingSchema); ok && !d.Dialect.CompletesApplied {
		if !same {
			s.Fill(t)
		}
		return t, w.reportFields(duplicates, nil)
	}
	return w.complete(t, duplicates)
}

// quoted quotes a path. It is escaped where Kubernetes reads JSON into a Go type, and nowhere else.
func (w *writeRequest) quoted(path string) string {
	if _, v := w.kind(); v.HasGoType() && w.patchType() != types.StrategicMergePatchType {
		return strconv.Quote(path)
	}
	return `"` + path + `"`
}

// reportFields deals with duplicate and unknown fields as the client asked. It warns
// whatever comes of the write: they may be why it is refused.
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
		if r.target.Subresource == "" { // or it may mean the object that it is under
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
	// What cannot be read, or is another object, is refused before anyone asks
	// whether it exists, and so is what is doubtful warned of.
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
		if t = nil; sent == nil { // the registry has changed the one it got
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

// anotherUID refuses an update of an object that has another uid, or that does not exist. Kubernetes names the
// key as its store has it, and for a dry run as it asks the store for it.
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
		if wrong != nil { // as nobody asks of JSON while there is nothing to patch
			return nil, wrong
		}
		patched = old
		return p.Apply(old)
	})
}

// apply is a server-side apply: the body says what one manager wants, and what
// it wanted before and says no more goes.
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
	case errors.As(err, &codec.YAMLError{}) && bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")): // taken for JSON at first
		return status.BadRequest("error decoding patch: error converting YAML to JSON: %v", err)
	case errors.As(err, &codec.YAMLError{}):
		return status.BadRequest("error encoding patch: %v", err)
	default:
		return status.BadRequest("error decoding patch: error unmarshaling JSON: while decoding JSON: %v", err)
	}
	same := false // what is applied changes no field
	w.options.CreateMissing = true
	w.options.Account = nil // an apply accounts for what it merges
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
		_, manages := metadata["managedFields"] // a null is a change for Kubernetes
		same = err == nil && old != nil && !manages && equalBesidesManagers(old, t)
		return t, err
	})
}

// equalBesidesManagers reports whether two objects differ in managedFields at most.
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

// repeated refuses what is applied and says a field twice. It is read as YAML, whatever it is.
func repeated(media codec.Media, duplicates []string) error {
	said := strings.Join(duplicates, ", ")
	if media == codec.YAML {
		said = "error converting YAML to JSON: " + said
	}
	return status.BadRequest("error strict decoding patch: %s", said)
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
		case ignores && errors.As(err, &refused): // the other decoder has words of its own
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

// managerOf is the manager of a client that names none: the program it is.
func managerOf(userAgent string) string {
	name, _, _ := strings.Cut(userAgent, "/")
	var b strings.Builder
	for _, r := range name {
		if unicode.IsPrint(r) && b.Len()+utf8.RuneLen(r) <= validation.FieldManagerMaxLength {
			b.WriteRune(r)
		}
	}
	return b.String()
}
