// Package tokencleaner deletes the Secrets of bootstrap tokens that have expired.
//
// It knows when a token expires, and looks at a Secret again then. It does not know who is let in
// by a token.
package tokencleaner

import (
	"bytes"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/access/authn/bootstraptoken"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object/status"
)

// Name is what the controller is called.
const Name = "token-cleaner-controller"

// A Controller deletes what has expired. A task is a Secret, by its key.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
}

// New makes the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{objects: o, queue: q}
}

// Keys returns those of the Secrets among which bootstrap tokens are.
func (c *Controller) Keys() []string {
	return []string{c.objects.Lookup("", "secrets").NamespacePrefix(bootstraptoken.Namespace)}
}

// See looks at Secrets that are written.
func (c *Controller) See(e *controller.Event) {
	if e.Value != nil && bytes.Contains(e.Value, []byte(bootstraptoken.Type)) {
		c.queue.Add(controller.Task{Key: e.Key})
	}
}

// Do deletes a Secret if its token has expired, and otherwise looks again when it will have.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	found, err := c.objects.Read(ctx, t.Key)
	if err != nil || found == nil {
		return err
	}
	s, err := bootstraptoken.ReadSecret(found.JSON)
	if err != nil || !s.IsToken() {
		return nil // It cannot be read, or is another one now.
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
		return nil // It is another one of its name.
	}
	return err
}
