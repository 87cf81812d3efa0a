package watch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/anykind/anykind/test/process"
)

const (
	namesEach = 4 // for each writer, in each namespace of each kind
	shared    = 3 // objects in each that all writers share
)

func sharedName(i int) string { return fmt.Sprintf("shared-%d", i) }

// A writer writes its own objects, and sometimes a shared one.
type writer struct {
	number int
	random *rand.Rand
	api    process.API
	ready  func(context.Context) error
	late   bool // Options.Late
	ledger *ledger
	next   int
	known  map[key]state
	names  map[key]int // number of abandoned names, by the first of them
	writes int
}

// run writes until the channel is closed. Its error is a violation.
func (w *writer) run(ctx context.Context, until <-chan struct{}) error {
	defer w.api.Client.CloseIdleConnections()
	for {
		select {
		case <-until:
			return nil
		default:
		}
		if err := w.step(ctx); err != nil {
			return fmt.Errorf("writer %d: %w", w.number, err)
		}
		w.writes++
	}
}

func (w *writer) step(ctx context.Context) error {
	k := key{kind: w.random.IntN(len(kinds))}
	spaces := kinds[k.kind].spaces()
	k.namespace = spaces[w.random.IntN(len(spaces))]
	label := labels[w.random.IntN(len(labels))]
	if w.random.IntN(8) == 0 {
		k.name = sharedName(w.random.IntN(shared))
		return w.patchShared(ctx, k, label)
	}
	k.name = fmt.Sprintf("w%d-%d", w.number, w.random.IntN(namesEach))
	if n := w.names[k]; n > 0 {
		k.name += fmt.Sprintf("-%d", n)
	}
	known, exists := w.known[k]
	if !exists {
		return w.create(ctx, k, label)
	}
	switch n := w.random.IntN(10); {
	case n < 3:
		return w.update(ctx, k, label, known)
	case n < 6:
		return w.patch(ctx, k, label, known)
	case n < 7:
		return w.nothing(ctx, k, known)
	default:
		return w.delete(ctx, k, known)
	}
}

// value returns a new value, with padding of any size.
func (w *writer) value() (value, pad string) {
	w.next++
	size := w.random.IntN(512)
	if w.random.IntN(16) == 0 {
		size = w.random.IntN(16 << 10)
	}
	return fmt.Sprintf("%d-%d", w.number, w.next), strings.Repeat("x", size)
}

func (w *writer) create(ctx context.Context, k key, label string) error {
	value, pad := w.value()
	in := newObject(k, label, value, pad)
	return w.write(ctx, http.MethodPost, kinds[k.kind].collection(k.namespace), k, value, in)
}

func (w *writer) update(ctx context.Context, k key, label string, known state) error {
	value, pad := w.value()
	in := newObject(k, label, value, pad)
	in.Metadata.ResourceVersion = fmt.Sprint(known.revision)
	return w.write(ctx, http.MethodPut, k.path(), k, value, in)
}

// patchOf returns a merge patch with a label and a value.
func patchOf(label, value, pad string) any {
	var l any
	if label != "" {
		l = label
	}
	return map[string]any{"metadata": map[string]any{
		"labels": map[string]any{labelKey: l}, "annotations": map[string]any{valueKey: value, padKey: pad},
	}}
}

func (w *writer) patch(ctx context.Context, k key, label string, known state) error {
	value, pad := w.value()
	return w.write(ctx, http.MethodPatch, k.path(), k, value, patchOf(label, value, pad))
}

// write makes one write of the writer's own object.
func (w *writer) write(ctx context.Context, method, path string, k key, value string, in any) error {
	w.ledger.tried(k, value)
	var out object
	err := w.api.Do(ctx, method, path, in, &out)
	if process.Unanswered(err) {
		return w.look(ctx, k)
	}
	if err != nil {
		return err
	}
	now, err := out.Metadata.state()
	if err != nil {
		return err
	}
	if now.value != value {
		return fmt.Errorf("%s %s of %q was answered with %q", method, path, value, now.value)
	}
	w.known[k] = now
	return w.ledger.wrote(k, now)
}

// nothing makes a write without a change, which leaves no trace.
func (w *writer) nothing(ctx context.Context, k key, known state) error {
	var out object
	in := map[string]any{"metadata": map[string]any{"annotations": map[string]any{valueKey: known.value}}}
	err := w.api.Do(ctx, http.MethodPatch, k.path(), in, &out)
	if process.Unanswered(err) {
		return w.ready(ctx)
	}
	if err != nil {
		return err
	}
	if now, err := out.Metadata.state(); err != nil || now != known {
		return fmt.Errorf("%v was %v; a patch that changes nothing made it %v, %v", k, known, now, err)
	}
	return nil
}

func (w *writer) delete(ctx context.Context, k key, known state) error {
	w.ledger.removed(k, known, false)
	err := w.api.Do(ctx, http.MethodDelete, k.path(), nil, nil)
	if process.Unanswered(err) {
		return w.look(ctx, k)
	}
	if err != nil {
		return err
	}
	w.ledger.removed(k, known, true)
	delete(w.known, k)
	return nil
}

// look reads an object after a write without a response. If the write may still take effect, the
// outcome comes from the streams.
func (w *writer) look(ctx context.Context, k key) error {
	if w.late {
		w.giveUp(k)
		return w.ready(ctx)
	}
	for {
		if err := w.ready(ctx); err != nil {
			return err
		}
		var out object
		err := w.api.Do(ctx, http.MethodGet, k.path(), nil, &out)
		var refused *process.Refused
		switch {
		case errors.As(err, &refused) && refused.Code == http.StatusNotFound:
			if was, existed := w.known[k]; existed {
				w.ledger.removed(k, was, true)
			}
			delete(w.known, k)
			return nil
		case process.Unanswered(err):
			continue
		case err != nil:
			return err
		}
		now, err := out.Metadata.state()
		if err != nil {
			return err
		}
		if w.known[k] == now {
			return nil
		}
		w.known[k] = now
		return w.ledger.wrote(k, now)
	}
}

// giveUp abandons a name, and continues with a new one.
func (w *writer) giveUp(k key) {
	delete(w.known, k)
	parts := strings.Split(k.name, "-")
	k.name = parts[0] + "-" + parts[1]
	w.names[k]++
}

// patchShared writes a shared object. Without a response, the outcome comes from the streams.
func (w *writer) patchShared(ctx context.Context, k key, label string) error {
	value, pad := w.value()
	w.ledger.tried(k, value)
	var out object
	err := w.api.Do(ctx, http.MethodPatch, k.path(), patchOf(label, value, pad), &out)
	if process.Unanswered(err) {
		return w.ready(ctx)
	}
	if err != nil {
		return err
	}
	now, err := out.Metadata.state()
	if err != nil {
		return err
	}
	if now.value != value || now.label != label {
		return fmt.Errorf("%v: the patch to %q was answered with %v", k, value, now)
	}
	return w.ledger.wrote(k, now)
}
