package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/jsonpatch"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// Mutating calls mutating webhooks in order.
type Mutating struct{ plugin }

// NewMutating returns the plugin MutatingAdmissionWebhook.
func NewMutating(o Options, c *Config) (*Mutating, error) {
	p := &Mutating{plugin{Options: o, kind: "admit", asked: "admit", step: "mutating webhook", configurations: &configurations{read: readMutating, credentials: c.users.For}}}
	const plural = "mutatingwebhookconfigurations"
	p.follow(&o, plural)
	return p, p.load("MutatingAdmissionWebhook", plural, c)
}

// A memory keeps state between the first calls of webhooks and their reinvocation.
type memory struct {
	// last is the object after the last webhook.
	last object.Tree
	// asked are the ids of called webhooks with reinvocationPolicy IfNeeded. due are those of them
	// after which the object has changed.
	asked, due map[string]bool
}

func newMemory() any { return &memory{asked: map[string]bool{}, due: map[string]bool{}} }

// changed makes the called webhooks due for reinvocation: the object has changed since.
func (m *memory) changed() {
	maps.Copy(m.due, m.asked)
	clear(m.asked)
}

// Mutate implements registry.Mutator. On a second call it calls only webhooks with
// reinvocationPolicy IfNeeded that have not seen the present object.
func (p *Mutating) Mutate(ctx context.Context, a *registry.Admission) error {
	found, err := p.find(ctx, a)
	if err != nil || len(found) == 0 {
		return err
	}
	w := match.NewWrite(a, p.Namespaces)
	m := a.Recall(p, newMemory).(*memory)
	if a.Again && !object.Equal(m.last, a.Object) {
		m.changed()
	}
	for i := range found {
		h := found[i].Of
		form, err := p.form(ctx, &found[i], w)
		if err != nil {
			return err
		}
		if form == nil || a.Again && !m.due[h.id] {
			continue
		}
		v, err := w.View(ctx, form)
		if err != nil {
			return status.Internal(err)
		}
		if err := p.ask(ctx, h, w, v, m); err != nil {
			return err
		}
	}
	if err := w.ConvertBack(ctx); err != nil {
		return status.Internal(err)
	}
	if len(m.asked) > 0 {
		m.last = object.CloneTree(a.Object)
	}
	return nil
}

// ask calls one webhook and applies its patch.
func (p *Mutating) ask(ctx context.Context, h *hook, w *match.Write, v *match.View, m *memory) error {
	round := 0
	if w.Again {
		round = 1
	}
	key := fmt.Sprintf("mutation.webhook.admission.k8s.io/round_%d_index_%d", round, h.place)
	q, begun := &question{hook: h, view: v}, time.Now()
	q.said, q.err = p.call(ctx, h, w, v, true)
	request.From(ctx).Wait(time.Since(begun))
	if q.err == nil {
		q.err = h.tell(w.Admission, q.said)
	}
	if q.err == nil {
		q.changed, q.err = h.change(w, v, q.said, round)
	}
	q.took = time.Since(begun)
	w.Annotate(key, encode(mutation{h.configuration, h.name, q.changed}))
	err := p.applyFailurePolicy(ctx, q, w.Admission, func() { w.Annotate("failed-open."+key, h.name) })
	if q.changed {
		m.changed()
		w.Reinvoke()
	}
	if h.reinvocable {
		m.asked[h.id] = true
	}
	return err
}

// A mutation is the audit annotation of a call.
type mutation struct {
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	Mutated       bool   `json:"mutated"`
}

// A patch is the audit annotation of a patch.
type patch struct {
	Configuration string          `json:"configuration"`
	Webhook       string          `json:"webhook"`
	Patch         json.RawMessage `json:"patch"`
	PatchType     string          `json:"patchType"`
}

func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(data)
}

// retype restores apiVersion and kind if a patch has removed them. The Go type implies them.
func retype(t, old object.Tree) {
	for _, field := range []string{"apiVersion", "kind"} {
		if t[field] == nil || t[field] == "" {
			t[field] = old[field]
		}
	}
}

// change applies the patch of an answer, and reports whether the object has changed.
func (h *hook) change(w *match.Write, v *match.View, response *answer, round int) (bool, error) {
	if len(response.Patch) == 0 {
		return false, nil
	}
	operations, err := jsonpatch.Decode(response.Patch)
	if err != nil {
		return false, h.failed(status.Unavailable("error decoding patch in webhook response"), "received undecodable patch in webhook response: %w", err)
	}
	switch {
	case len(operations) == 0:
		return false, nil
	case v.Object == nil:
		return false, status.Internal(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", h.name))
	case response.patchType != admissionv1.PatchTypeJSONPatch:
		return false, h.failed(denied(h.name, response.Result), "unsupported patch type %q", response.patchType)
	}
	changed, err := operations.Apply(v.Object)
	if err == nil && v.Version.HasGoType() {
		retype(changed, v.Object)
	}
	if err == nil && v.Schema != nil {
		changed, _, err = v.Schema.Complete(changed)
		err = status.Cause(err)
	}
	if err != nil {
		return false, status.Internal(err)
	}
	w.AnnotateRequest(fmt.Sprintf("patch.webhook.admission.k8s.io/round_%d_index_%d", round, h.place),
		encode(patch{h.configuration, h.name, json.RawMessage(response.Patch), string(admissionv1.PatchTypeJSONPatch)}))
	if object.Equal(v.Object, changed) {
		return false, nil
	}
	w.Change(v, changed)
	return true, nil
}
