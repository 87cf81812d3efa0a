package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// Validating calls validating webhooks concurrently.
type Validating struct{ plugin }

// NewValidating returns the plugin ValidatingAdmissionWebhook.
func NewValidating(o Options, c *Config) (*Validating, error) {
	p := &Validating{plugin{Options: o, kind: "validating", asked: "validate", step: "validating webhook", configurations: &configurations{read: readValidating, credentials: c.users.For}}}
	const plural = "validatingwebhookconfigurations"
	p.follow(&o, plural)
	return p, p.load("ValidatingAdmissionWebhook", plural, c)
}

// Validate implements registry.Validator. If several webhooks reject, the first in their order
// gives the error.
func (p *Validating) Validate(ctx context.Context, a *registry.Admission) error {
	found, err := p.find(ctx, a)
	if err != nil || len(found) == 0 {
		return err
	}
	w := match.NewWrite(a, p.Namespaces)
	var questions []*question
	for i := range found {
		form, err := p.form(ctx, &found[i], w)
		if err != nil {
			return err
		}
		if form == nil {
			continue
		}
		v, err := w.View(ctx, form)
		if err != nil {
			return status.Internal(err)
		}
		questions = append(questions, &question{hook: found[i].Of, view: v})
	}
	if len(questions) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return timedOut()
	}
	begun := time.Now()
	p.ask(ctx, w, questions)
	request.From(ctx).Wait(time.Since(begun))
	return p.conclude(ctx, a, questions)
}

// ask calls all webhooks concurrently.
func (p *Validating) ask(ctx context.Context, w *match.Write, questions []*question) {
	one := func(q *question) {
		begun := time.Now()
		q.said, q.err = p.call(ctx, q.hook, w, q.view, false)
		q.took = time.Since(begun)
	}
	var all sync.WaitGroup
	for _, q := range questions[1:] {
		all.Go(func() { one(q) })
	}
	one(questions[0])
	all.Wait()
}

// conclude returns the first error in order.
func (p *Validating) conclude(ctx context.Context, a *registry.Admission, questions []*question) (first error) {
	for i, q := range questions {
		if q.err == nil {
			q.err = q.hook.tell(a, q.said)
		}
		err := p.applyFailurePolicy(ctx, q, a, func() {
			a.Annotate(fmt.Sprintf("failed-open.validating.webhook.admission.k8s.io/round_0_index_%d", i), q.hook.name)
		})
		if first == nil {
			first = err
		}
	}
	return first
}
