package controller

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
)

// A Header is what decides about the life of a stored object. Its strings are
// parts of the stored bytes: who remembers one of them for long clones it.
type Header struct {
	object.Encoded
	Key        string
	Finalizers []string
	Owners     []metav1.OwnerReference
	// Ends is when an object is to be gone that is being deleted and has time to end.
	Ends time.Time
}

// ReadHeader reads the header of what is stored at a key.
func ReadHeader(key string, value []byte, revision int64) (*Header, error) {
	e, err := object.Scan(value, revision)
	if err != nil {
		return nil, err
	}
	return headerOf(key, &e)
}

func headerOf(key string, e *object.Encoded) (*Header, error) {
	metadata, err := object.Field(e.JSON, "metadata")
	if err != nil {
		return nil, err
	}
	var m struct {
		Finalizers      []string
		OwnerReferences []metav1.OwnerReference

		DeletionTimestamp          metav1.Time
		DeletionGracePeriodSeconds int64
	}
	if err := json.Unmarshal(metadata, &m); err != nil {
		return nil, err
	}
	h := &Header{Encoded: *e, Key: key, Finalizers: m.Finalizers, Owners: m.OwnerReferences}
	if m.DeletionGracePeriodSeconds > 0 {
		h.Ends = m.DeletionTimestamp.Time
	}
	return h, nil
}

// Group is the API group that the object says it is of.
func (h *Header) Group() string {
	gv, _ := schema.ParseGroupVersion(h.APIVersion())
	return gv.Group
}

// Has reports whether the object has a finalizer.
func (h *Header) Has(finalizer string) bool { return slices.Contains(h.Finalizers, finalizer) }
