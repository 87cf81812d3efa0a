// Package tokencleaner deletes the Secrets of expired bootstrap tokens.
//
// It processes a Secret again when its token expires. It does not know how tokens authenticate.
package tokencleaner

import (
	"bytes"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/access/authn/bootstraptoken"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object/status"
)

// Name is the name of the controller.
const Name = "token-cleaner-controller"

// A Controller deletes expired tokens. The key of a task is that of a Secret.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
}

// New returns the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{objects: o, queue: q}
}

// Keys returns the key prefix of the Secrets that may be bootstrap tokens.
func (c *Controller) Keys() []string {
	return []string{c.objects.Lookup("", "secrets").NamespacePrefix(bootstraptoken.Namespace)}
}

// See queues a written Secret.
func (c *Controller) See(e *controller.Event) {
	if e.Value != nil && bytes.Contains(e.Value, []byte(bootstraptoken.Type)) {
		c.queue.Add(controller.Task{Key: e.Key})
	}
}

// Do deletes a Secret with an expired token. Otherwise it schedules a check at the expiry.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	found, err := c.objects.Read(ctx, t.Key)
	if err != nil || found == nil {
		return err
	}
	s, err := bootstraptoken.ReadSecret(found.JSON)
	if err != nil || !s.IsToken() {
		return nil // unreadable, or no longer a token
	}
	at, ok := s.Ends()
	now := c.objects.Now()
	switch {
	case !ok:
		return nil
	case now.Before(at):
		c.queue.After(t, at.Sub(now))
		return nil
	}
	err = c.objects.Delete(ctx, c.objects.Lookup("", "secrets"), t.Key, &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(found.UID)})
	if status.Is(err, metav1.StatusReasonConflict) {
		return nil // another Secret of the same name
	}
	return err
}
