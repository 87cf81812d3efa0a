package rest

import (
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// deleteOptions reads the options of a delete from the body or, without a body, from the query.
func deleteOptions(r *call, gates *gate.Set) (*metav1.DeleteOptions, error) {
	o, err := sentDeleteOptions(r)
	if err != nil {
		return nil, err
	}
	if !gates.On(gate.AllowUnsafeMalformedObjectDeletion) {
		o.IgnoreStoreReadErrorWithClusterBreakingPotential = nil
	}
	return o, checkDelete(o)
}

// sentDeleteOptions decodes the options of a delete: of its body, or else of its query.
func sentDeleteOptions(r *call) (*metav1.DeleteOptions, error) {
	body, err := r.readBody()
	if err != nil {
		return nil, err
	}
	o := &metav1.DeleteOptions{}
	if len(body) > 0 {
		media, err := codec.OfferTo(r.Request).ContentType(r.Header.Get("Content-Type"))
		if err != nil {
			return nil, err
		}
		if err := codec.DecodeOptions(media, body, metav1.SchemeGroupVersion.WithKind("DeleteOptions"), o); err != nil {
			return nil, status.BadRequest("%v", err)
		}
		r.auditOptions(o)
		return o, nil
	}
	out, err := queryOptions(r, func(v *url.Values, out *metav1.DeleteOptions, s conversion.Scope) error {
		return metav1.Convert_url_Values_To_v1_DeleteOptions(v, out, s)
	})
	return &out, err
}

func checkDelete(o *metav1.DeleteOptions) error {
	return invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(o))
}

func (h *Handler) delete(r *call) error {
	view, err := r.view(codec.One)
	if err != nil {
		return err
	}
	o, err := deleteOptions(r, h.options.Gates)
	if err != nil {
		return err
	}
	if registry.IgnoresReadErrors(o) {
		if err := r.mayIgnoreReadErrors(); err != nil {
			return err
		}
	}
	r.warnOfOrphans(o)
	deletion, err := h.registry.Delete(r.Context(), r.target, o, r.deletion(o, view, codec.One))
	if err != nil {
		return err
	}
	d := r.target.Definition
	if deletion.Object.Tree == nil {
		request.AnswerStatus(r.w, r.Request, metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusOK, Details: &metav1.StatusDetails{Name: r.target.Name, Kind: d.Kind}})
		return nil
	}
	if !deletion.Gone || d.ReturnsDeletedIn(r.target.Version) {
		return h.respondResult(r, view, deletedCode(o, deletion.Gone), deletion.Object)
	}
	request.AnswerStatus(r.w, r.Request, metav1.Status{
		Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name:  r.target.Name,
			Group: d.Group,
			Kind:  d.Plural,
			UID:   types.UID(object.UID(deletion.Object.Tree)),
		},
	})
	return nil
}

// deletion returns the options of a deletion whose answer has the given shape.
func (r *call) deletion(o *metav1.DeleteOptions, view *codec.View, shape codec.Shape) registry.WriteOptions {
	return registry.WriteOptions{
		DryRun: len(o.DryRun) > 0,
		Warn:   r.warned.add,
		Fits:   func() error { return r.fits(view, shape) },
	}
}

// warnOfOrphans warns a client that did not choose a propagation policy, if the object can be
// read.
func (r *call) warnOfOrphans(o *metav1.DeleteOptions) {
	//lint:ignore SA1019 old clients send it
	if w := r.target.Definition.OrphanWarning; w != "" && o.PropagationPolicy == nil && o.OrphanDependents == nil && !registry.IgnoresReadErrors(o) {
		r.warned.add(w)
	}
}

// mayIgnoreReadErrors returns an error unless the user may delete the object even if it is unreadable.
func (r *call) mayIgnoreReadErrors() error {
	const verb = "unsafe-delete-ignore-read-errors"
	if q := request.From(r.Context()); q != nil {
		q.Annotate("apiserver.k8s.io/unsafe-delete-ignore-read-error", "")
	}
	err := request.May(r.Context(), verb)
	if status.Is(err, metav1.StatusReasonForbidden) {
		return status.Forbidden(r.target.Definition.GroupResource(), r.target.Name, fmt.Errorf("not permitted to do %q, reason: ", verb))
	}
	return err
}

// deletedCode returns 202 for a client with the deprecated orphanDependents: false if the object
// waits for its dependents.
func deletedCode(o *metav1.DeleteOptions, gone bool) int {
	//lint:ignore SA1019 old clients send it
	if leave := o.OrphanDependents; !gone && leave != nil && !*leave {
		return http.StatusAccepted
	}
	return http.StatusOK
}

func (h *Handler) deleteCollection(r *call) error {
	view, err := r.view(codec.List)
	if err != nil {
		return err
	}
	query, err := queryOptions(r, metav1.Convert_url_Values_To_v1_ListOptions)
	if err != nil {
		return err
	}
	if err := invalidList(&query, validateList(&query)); err != nil {
		return err
	}
	selection, err := r.selection(&query)
	if err != nil {
		return err
	}
	o, err := deleteOptions(r, h.options.Gates)
	if err != nil {
		return err
	}
	if registry.IgnoresReadErrors(o) {
		return invalidOptions("DeleteOptions", field.ErrorList{field.Invalid(field.NewPath("ignoreStoreReadErrorWithClusterBreakingPotential"), true,
			"is not allowed with DELETECOLLECTION, try again after removing the option")})
	}
	r.warnOfOrphans(o)
	l, err := h.registry.DeleteCollection(r.Context(), r.target, h.listOptions(selection, &query), o, r.deletion(o, view, codec.List))
	if err != nil {
		return err
	}
	return h.writeList(h.registry.Hold(r.Context(), r.target.Definition), r, view, l)
}
