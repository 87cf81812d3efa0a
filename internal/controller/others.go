package controller

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// Aggregated are the aggregated API servers. Controllers handle their objects like stored ones: a kind
// has a Definition, and an object has a key. The keys begin with OthersRoot, and operations on them
// are requests to the server of the kind.
type Aggregated interface {
	// As returns Aggregated whose requests impersonate the ServiceAccount of a controller.
	As(account string) Aggregated
	// Any reports whether there are any such servers. It sends no request.
	Any(ctx context.Context) bool
	// Kinds returns the kinds whose objects can be deleted. The error lists versions whose
	// discovery failed; the other kinds are still returned.
	Kinds(ctx context.Context) ([]*resource.Definition, error)
	// Get returns an object as JSON, or nil if its server responds that it does not exist.
	Get(ctx context.Context, key string) ([]byte, error)
	// Pages calls do for all objects with a prefix, of a kind or of a namespace in it.
	Pages(ctx context.Context, prefix string, do func(kv.Page)) error
	// Put replaces an object.
	Put(ctx context.Context, key string, body []byte) error
	// Delete deletes an object. A missing object is no error.
	Delete(ctx context.Context, key string, options *metav1.DeleteOptions) error
	// Follow yields all objects of a kind and then their events, until ctx ends. Objects may have
	// metadata only.
	Follow(ctx context.Context, d *resource.Definition) iter.Seq[kv.Event]
}

// OthersRoot begins the keys of objects of other servers. No stored object has such a key.
const OthersRoot = "/others/"

// IsOthers reports whether a key belongs to an object of another server.
func IsOthers(key string) bool { return strings.HasPrefix(key, OthersRoot) }

// For returns a copy of o whose requests to other servers impersonate a ServiceAccount.
func (o *Objects) For(account string) *Objects {
	own := *o
	if own.Aggregated != nil {
		own.Aggregated = own.Aggregated.As(account)
	}
	return &own
}

// OtherKinds returns the kinds of other servers.
func (o *Objects) OtherKinds(ctx context.Context) ([]*resource.Definition, error) {
	if o.Aggregated == nil {
		return nil, nil
	}
	return o.Aggregated.Kinds(ctx)
}

// otherKind returns the Definition of a kind of another server.
func (o *Objects) otherKind(ctx context.Context, gv schema.GroupVersion, kind string) (*resource.Definition, error) {
	kinds, err := o.OtherKinds(ctx)
	for _, d := range kinds {
		if d.Group == gv.Group && d.Kind == kind && d.Version(gv.Version) != nil {
			return d, nil
		}
	}
	return nil, err
}

// otherKey returns the Definition for a key of another server.
func (o *Objects) otherKey(ctx context.Context, key string) (*resource.Definition, error) {
	kinds, err := o.OtherKinds(ctx)
	for _, d := range kinds {
		if strings.HasPrefix(key, d.StoragePrefix) {
			return d, nil
		}
	}
	if err == nil {
		err = &UnknownError{What: key}
	}
	return nil, err
}

// readOther returns the header of an object of another server, or nil.
func (o *Objects) readOther(ctx context.Context, key string) (*Header, error) {
	body, err := o.Aggregated.Get(ctx, key)
	if err != nil || body == nil {
		return nil, err
	}
	return ReadHeader(key, body, RevisionOf(body))
}

// changeOther updates an object of another server with edit.
func (o *Objects) changeOther(ctx context.Context, key, uid string, edit func(object.Tree) bool) error {
	for attempt := 0; ; attempt++ {
		body, err := o.Aggregated.Get(ctx, key)
		if err != nil || body == nil {
			return err
		}
		t, _, err := codec.Decode(codec.JSON, body)
		if err != nil || object.UID(t) != uid || !edit(t) {
			return err
		}
		if err = o.Aggregated.Put(ctx, key, object.AppendJSON(nil, t)); !apierrors.IsConflict(err) || attempt == StaleRetries {
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}
	}
}

// RevisionOf returns the resourceVersion of another server's object, or 0 if it is not a number.
func RevisionOf(body []byte) int64 {
	var t struct {
		Metadata struct{ ResourceVersion string }
	}
	if json.Unmarshal(body, &t) != nil {
		return 0
	}
	revision, _ := strconv.ParseInt(t.Metadata.ResourceVersion, 10, 64)
	return revision
}

// lookAgain is the interval of discovery of other servers' kinds.
const lookAgain = 30 * time.Second

// followOthers delivers events of other servers to the controllers that observe them, until ctx
// ends. It does nothing while there are no such servers.
func (e *Engine) followOthers(ctx context.Context) {
	others := e.objects.Aggregated.As(collector)
	following := map[string]context.CancelFunc{} // by the key prefix of a kind
	for {
		kinds, err := others.Kinds(ctx)
		known := map[string]bool{}
		for _, d := range kinds {
			known[d.StoragePrefix] = true
			if following[d.StoragePrefix] == nil {
				following[d.StoragePrefix] = e.followOther(ctx, others, d)
				e.retryUnknown()
			}
		}
		for prefix, end := range following {
			if err == nil && !known[prefix] {
				end()
				delete(following, prefix)
			}
		}
		var again <-chan time.Time
		if others.Any(ctx) {
			again = time.After(lookAgain)
		}
		select {
		case <-e.servicesChanged:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// collector is the ServiceAccount for watches of other servers.
const collector = "generic-garbage-collector"

func (e *Engine) followOther(ctx context.Context, others Aggregated, d *resource.Definition) context.CancelFunc {
	ctx, end := context.WithCancel(ctx)
	e.followers.Go(func() {
		for event := range others.Follow(ctx, d) {
			e.showOther(&event)
		}
	})
	return end
}

func (e *Engine) showOther(event *kv.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.event.reset(event, false)
	for i := range e.members {
		if m := &e.members[i]; m.others {
			m.See(&e.event)
		}
	}
}

func (e *Engine) retryUnknown() {
	for _, m := range e.members {
		m.queue.retryUnknown()
	}
}
