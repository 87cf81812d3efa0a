package rest

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry/apply"
)

// patchType returns the type of the patch by its content type.
func (r *call) patchType() types.PatchType {
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return types.PatchType(strings.TrimSpace(contentType))
}

// checkPatchType rejects patch types that the resource does not support, whatever the kind of its
// subresource.
func (r *call) checkPatchType(patchType types.PatchType) error {
	supported := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if r.target.Definition.Dialect.StrategicMergePatch {
		supported = append(supported, string(types.StrategicMergePatchType))
	}
	supported = append(supported, string(types.ApplyYAMLPatchType))
	if codec.OfferTo(r.Request).CBOR {
		supported = append(supported, string(types.ApplyCBORPatchType))
	}
	if slices.Contains(supported, string(patchType)) {
		return nil
	}
	if r.target.Definition.Dialect.RoutesMethods {
		return status.NoSuchPatch()
	}
	return status.UnsupportedMediaType(supported...)
}

// applyMedia maps the types of apply patches to their media.
var applyMedia = map[types.PatchType]codec.Media{
	types.ApplyYAMLPatchType: codec.YAML,
	types.ApplyCBORPatchType: codec.CBOR,
}

// expect returns the requirements for an object in the body, or for the result of a patch.
func (w *writeRequest) expect() codec.Expect {
	d, v := w.kind()
	x := codec.Expect{
		Kind:   d.GroupVersionKind(v.Name),
		New:    v.New,
		Offer:  codec.OfferTo(w.Request),
		Strict: w.validation != metav1.FieldValidationIgnore,
	}
	if d == w.target.Definition {
		x.Versions = d.VersionNames()
	} else { // the path has no version of it
		x.Alike = d.VersionNames()
	}
	return x
}

// completePatched completes t, the result of a patch of old, by the schema.
func (w *writeRequest) completePatched(p *apply.Patch, old, t object.Tree) (object.Tree, error) {
	d, _ := w.kind()
	x, named := w.expect(), codec.CheckNamed
	if d.Dialect.ChecksPatchedKind {
		named = x.Name
	}
	if err := named(t); err != nil {
		return nil, w.misfit(p, old, codec.Unhandled(x.Kind, x.Kind.Kind, err))
	}
	t, err := w.complete(t, p.Duplicates)
	if err != nil {
		return nil, w.misfit(p, old, err)
	}
	return t, nil
}

// misfit returns the error for a result of a patch that does not decode. It is 422 rather than
// 400, because the patch is invalid.
func (w *writeRequest) misfit(p *apply.Patch, old object.Tree, err error) error {
	if !status.Is(err, metav1.StatusReasonBadRequest) {
		return err
	}
	shown := p.Shown
	if shown == nil {
		t, err := p.Apply(old)
		if err != nil {
			return err
		}
		shown = func() string { return string(object.AppendJSON(nil, t)) }
	}
	_, v := w.kind()
	message := status.Cause(err).Error()
	if p.Shown != nil {
		message = cmp.Or(unrestorable(p, old, v), message)
	}
	return status.Invalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), shown(), message)})
}

// unrestorable returns the reason why the result of a patch does not fit the Go type, in the
// words of Kubernetes' converter: after a strategic merge patch Kubernetes decodes no JSON.
func unrestorable(p *apply.Patch, old object.Tree, v *resource.Version) string {
	t, err := p.Raw(old)
	if err != nil {
		return ""
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t, v.New()); err != nil {
		return err.Error()
	}
	return ""
}
