package controller

import (
	"context"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// NamespaceOf returns the namespace in a key, or "".
func NamespaceOf(key string) string {
	i := strings.LastIndexByte(key, '/')
	if i < 0 {
		return ""
	}
	return key[strings.LastIndexByte(key[:i], '/')+1 : i]
}

// A Namespace is a stored namespace.
type Namespace struct {
	*Header
	Kind   *resource.Definition // of namespaces
	Spec   corev1.NamespaceSpec
	Status corev1.NamespaceStatus
}

// Namespace returns the stored namespace of that name, or nil.
func (o *Objects) Namespace(ctx context.Context, name string) (*Namespace, error) {
	d := o.Lookup("", "namespaces")
	h, err := o.Read(ctx, d.Key("", name))
	if err != nil || h == nil {
		return nil, err
	}
	var n struct {
		Spec   corev1.NamespaceSpec
		Status corev1.NamespaceStatus
	}
	err = json.Unmarshal(h.JSON, &n)
	return &Namespace{Header: h, Kind: d, Spec: n.Spec, Status: n.Status}, err
}

// ActiveNamespace returns the name of the event's namespace if it is not in deletion, otherwise "".
func (e *Event) ActiveNamespace(prefix string) string {
	name, ok := strings.CutPrefix(e.Key, prefix)
	if !ok || e.Value == nil {
		return ""
	}
	if now, err := e.Now(); err != nil || now.Deleting {
		return ""
	}
	return name
}

// InNamespace calls do if a namespace exists and is active. It ignores the error if the namespace
// is deleted meanwhile.
func (o *Objects) InNamespace(ctx context.Context, name string, do func() error) error {
	n, err := o.Namespace(ctx, name)
	if err != nil || n == nil || n.Deleting || n.Status.Phase != corev1.NamespaceActive {
		return err
	}
	err = do()
	if status.Is(err, metav1.StatusReasonNotFound) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}
