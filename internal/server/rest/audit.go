package rest

import (
	"bytes"
	"encoding/json"
	"io"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/request"
)

// auditVersion records that the version is deprecated.
func (r *call) auditVersion() {
	v := r.target.Version
	if r.audit == nil || !v.Deprecated {
		return
	}
	q := request.From(r.Context())
	q.Annotate("k8s.io/deprecated", "true")
	if v.RemovedRelease != "" {
		q.Annotate("k8s.io/removed-release", v.RemovedRelease)
	}
}

// auditObject records the object in the body of a write.
func (w *writeRequest) auditObject(t object.Tree) {
	if w.audit == nil {
		return
	}
	w.audit.Object(request.ObjectMeta{
		Namespace: object.Namespace(t), Name: object.Name(t), ResourceVersion: object.ResourceVersion(t), UID: types.UID(object.UID(t)),
	}, func() []byte { return w.typed(object.AppendTypedJSON(nil, t)) })
}

// typed returns the JSON of an object without the empty fields that its Go type omits.
func (w *writeRequest) typed(data []byte) []byte {
	_, v := w.kind()
	if !v.HasGoType() {
		return data
	}
	o := v.New()
	if json.Unmarshal(data, o) != nil {
		return data
	}
	if out, err := json.Marshal(o); err == nil {
		return out
	}
	return data
}

// auditPatch records a patch as JSON. A body that is no JSON is rejected later.
func (r *call) auditPatch(patchType types.PatchType) {
	if r.audit == nil || !r.audit.WantsBody() {
		return
	}
	body, err := r.readBody()
	if err != nil {
		return
	}
	if media, ok := applyMedia[patchType]; ok && !(media == codec.YAML && yaml.IsJSONBuffer(body)) {
		t, _, err := codec.Decode(media, body)
		if err != nil {
			return
		}
		body = object.AppendJSON(nil, t)
	}
	if json.Valid(body) {
		r.audit.Body(body)
	}
}

// auditOptions records the options in the body of a deletion.
func (r *call) auditOptions(o *metav1.DeleteOptions) {
	if r.audit == nil || !r.audit.WantsBody() {
		return
	}
	named := *o
	named.Kind = "DeleteOptions"
	if named.APIVersion == "" {
		named.APIVersion = metav1.SchemeGroupVersion.String()
	}
	if body, err := json.Marshal(&named); err == nil {
		r.audit.Body(body)
	}
}

// answer answers with an object that render returns in the form of a view. The audit log has JSON.
func (r *call) answer(view *codec.View, code int, render func(*codec.View) ([]byte, error)) error {
	doc, err := render(view)
	if err != nil {
		return err
	}
	if r.audit != nil && r.audit.WantsAnswer() {
		logged := doc
		if plain, ok := view.AsJSON(); ok {
			if logged, err = render(plain); err != nil {
				return err
			}
		}
		r.audit.Answer(logged)
	}
	request.Answer(r.w, view.Format, code, doc)
	return nil
}

// stream writes an answer. write writes it in the form of a view. The audit log has it as JSON, all of
// it, even if the client leaves.
func (r *call) stream(view *codec.View, write func(io.Writer, *codec.View) error) error {
	if r.audit == nil || !r.audit.WantsAnswer() {
		return write(r.w, view)
	}
	plain, differs := view.AsJSON()
	if !differs {
		plain = view
	}
	var logged bytes.Buffer
	if err := write(&logged, plain); err != nil {
		return err
	}
	r.audit.Answer(logged.Bytes())
	if differs {
		return write(r.w, view)
	}
	_, err := r.w.Write(logged.Bytes())
	return err
}
