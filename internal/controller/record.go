package controller

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// A Warning is the content of an Event of type Warning.
type Warning struct {
	Reporter             string // the controller
	Reason, Action, Note string
}

// Warn creates an Event about the object of d at a key. A failure is only logged, as is the warning
// itself.
func (o *Objects) Warn(ctx context.Context, d *resource.Definition, about *Header, w Warning) {
	namespace, name := d.Split(about.Key)
	o.Logger.Warn(w.Note, "reason", w.Reason, "kind", d.Kind, "namespace", namespace, "name", name)
	at := o.Now().UTC()
	event := name + fmt.Sprintf(".%x", at.UnixNano())
	if len(validation.IsDNS1123Subdomain(event)) > 0 {
		event = string(uuid.NewUUID())
	}
	in := namespace
	if in == "" {
		in = metav1.NamespaceDefault
	}
	host, _ := os.Hostname()
	regarding := object.Tree{
		"apiVersion": d.APIVersion(d.StorageVersion().Name), "kind": d.Kind, "name": name,
		"uid": about.UID, "resourceVersion": fmt.Sprint(about.Revision),
	}
	if namespace != "" {
		regarding["namespace"] = namespace
	}
	err := o.Create(ctx, o.Lookup("events.k8s.io", "events"), in, object.Tree{
		"metadata":  object.Tree{"name": event, "namespace": in},
		"eventTime": at.Format(metav1.RFC3339Micro), "type": "Warning", "regarding": regarding,
		"reason": w.Reason, "action": w.Action, "note": w.Note,
		"reportingController": w.Reporter, "reportingInstance": w.Reporter + "-" + host,
	})
	if err != nil {
		o.Logger.Warn("the Event cannot be created", "error", err)
	}
}
