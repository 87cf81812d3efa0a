package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/object"
)

// A header is what decides about the life of a stored object.
type header struct {
	object.Encoded
	key        string
	finalizers []string
	owners     []metav1.OwnerReference
}

// readHeader reads the header of what is stored at a key.
func readHeader(key string, value []byte, revision int64) (*header, error) {
	e, err := object.Scan(value, revision)
	if err != nil {
		return nil, err
	}
	metadata, err := object.Field(value, "metadata")
	if err != nil {
		return nil, err
	}
	var m struct {
		Finalizers      []string
		OwnerReferences []metav1.OwnerReference
	}
	if err := json.Unmarshal(metadata, &m); err != nil {
		return nil, err
	}
	return &header{Encoded: e, key: key, finalizers: m.Finalizers, owners: m.OwnerReferences}, nil
}

// group is the API group that the object says it is of.
func (h *header) group() string {
	gv, _ := schema.ParseGroupVersion(h.APIVersion())
	return gv.Group
}

func (h *header) has(finalizer string) bool { return slices.Contains(h.finalizers, finalizer) }

// waits reports whether the object goes only after its dependents.
func (h *header) waits() bool { return h.Deleting && h.has(metav1.FinalizerDeleteDependents) }

// blocks reports whether an owner that waits for its dependents waits for the
// one that names it like that.
func blocks(o *metav1.OwnerReference) bool {
	return o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion
}

// read returns the header of what is stored at a key now, or nil.
func (l *Lifecycle) read(ctx context.Context, key string) (*header, error) {
	record, err := l.Backend.Get(ctx, key, kv.Latest)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return readHeader(key, record.Value, record.Revision)
}
