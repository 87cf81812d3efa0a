package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/anykind/anykind/test/process"
)

// shared is the name of the object that all writers increment.
const shared = "shared"

const objectsEach = 16

// A writer writes its own objects, one request after the other.
type writer struct {
	number int
	random *rand.Rand
	ledger *ledger
	count  *counter
	next   int64 // value of the next write; never used twice
	acked  func()
}

// run writes until the server is gone. Its error is a violation.
func (w *writer) run(ctx context.Context, api process.API) error {
	defer api.Client.CloseIdleConnections()
	for ctx.Err() == nil {
		err := w.step(ctx, api)
		if gone := (*lost)(nil); errors.As(err, &gone) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("writer %d: %w", w.number, err)
		}
		w.acked()
	}
	return nil
}

// lost is the error of a request without a response.
type lost struct{ err error }

func (l *lost) Error() string { return l.err.Error() }

// step makes one write.
func (w *writer) step(ctx context.Context, api process.API) error {
	if w.random.IntN(10) == 0 {
		return w.increment(ctx, api)
	}
	name := fmt.Sprintf("w%d-%d", w.number, w.random.IntN(objectsEach))
	known := w.ledger.get(name)
	w.next++
	r := newRecord(name, w.next, w.padding())
	switch {
	case !known.present:
		return w.send(ctx, api, http.MethodPost, path, name, r, version{present: true, value: w.next})
	case w.random.IntN(6) == 0:
		return w.send(ctx, api, http.MethodDelete, path+"/"+name, name, nil, version{})
	case w.random.IntN(3) == 0:
		patch := map[string]any{"spec": r.Spec}
		return w.send(ctx, api, http.MethodPatch, path+"/"+name, name, patch, version{present: true, value: w.next})
	default:
		r.Metadata.ResourceVersion = fmt.Sprint(known.revision)
		return w.send(ctx, api, http.MethodPut, path+"/"+name, name, r, version{present: true, value: w.next})
	}
}

// send makes a write with the result v for an object, and records the outcome.
func (w *writer) send(ctx context.Context, api process.API, method, path, name string, body any, v version) error {
	var answer record
	err := api.Do(ctx, method, path, body, &answer)
	if refused := (*process.Refused)(nil); errors.As(err, &refused) {
		return err // the object has no other writer, so there is no reason for an error
	}
	if err != nil {
		w.ledger.lose(name, v)
		return &lost{err}
	}
	if v.present {
		if err := answer.check(); err != nil {
			return err
		}
		if answer.Spec.Value != v.value {
			return fmt.Errorf("%s: asked for value %d, was answered %d", name, v.value, answer.Spec.Value)
		}
		if v.revision, err = answer.revision(); err != nil {
			return err
		}
	}
	return w.ledger.acknowledge(name, v)
}

// increment adds one to the shared object, unless a concurrent write comes first.
func (w *writer) increment(ctx context.Context, api process.API) error {
	var r record
	if err := api.Do(ctx, http.MethodGet, path+"/"+shared, nil, &r); err != nil {
		return gone(err)
	}
	r.Spec = newSpec(r.Spec.Value+1, r.Spec.Padding)
	err := api.Do(ctx, http.MethodPut, path+"/"+shared, r, nil)
	refused := (*process.Refused)(nil)
	switch {
	case errors.As(err, &refused) && refused.Code == http.StatusConflict:
		return nil
	case err != nil:
		w.count.open.Add(1)
		return gone(err)
	}
	w.count.sure.Add(1)
	return nil
}

// gone wraps the error of a request without a response.
func gone(err error) error {
	if refused := (*process.Refused)(nil); errors.As(err, &refused) {
		return err
	}
	return &lost{err}
}

// padding returns up to 4 kB, and sometimes much more, so that a write takes long.
func (w *writer) padding() string {
	n := w.random.IntN(4 << 10)
	if w.random.IntN(50) == 0 {
		n = w.random.IntN(256 << 10)
	}
	return strings.Repeat(string(rune('a'+w.random.IntN(26))), n)
}
