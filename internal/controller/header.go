package controller

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
)

// A Header has the parts of a stored object that decide about its life cycle. Its strings are
// slices of the stored bytes, so long-lived copies need strings.Clone.
type Header struct {
	object.Encoded
	Key        string
	Finalizers []string
	Owners     []metav1.OwnerReference
	// Ends is the end of the grace period of an object in deletion.
	Ends time.Time
}

// ReadHeader reads the header of a stored object.
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

// Group is the API group in the apiVersion of the object.
func (h *Header) Group() string {
	gv, _ := schema.ParseGroupVersion(h.APIVersion())
	return gv.Group
}

// Has reports whether the object has a finalizer.
func (h *Header) Has(finalizer string) bool { return slices.Contains(h.Finalizers, finalizer) }
