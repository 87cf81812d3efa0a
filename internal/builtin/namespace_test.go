package builtin

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/resource"
)

func TestNamespaceLife(t *testing.T) {
	d := definition(t, "namespaces")
	v := d.Versions[0]
	created, errs := write(t, d, read(t, `{metadata: {name: dev, labels: {a: b}}, spec: {finalizers: [example.com/x]}, status: {phase: Terminating}}`), nil)
	same(t, "errors", messages(errs), []string(nil))
	same(t, "created", created, read(t, `
metadata: {name: dev, labels: {a: b, kubernetes.io/metadata.name: dev}}
spec: {finalizers: [example.com/x, kubernetes]}
status: {phase: Active}`))

	updated, errs := write(t, d, read(t, `{metadata: {name: dev}, spec: {finalizers: [example.com/y]}, status: {phase: Terminating}}`), created)
	same(t, "errors", messages(errs), []string(nil))
	same(t, "updated", updated, read(t, `
metadata: {name: dev, labels: {kubernetes.io/metadata.name: dev}}
spec: {finalizers: [example.com/x, kubernetes]}
status: {phase: Active}`))

	// A deletion sets the phase, and the finalizers hold the namespace.
	d.BeforeDelete(t.Context(), &resource.Change{Object: updated}, &metav1.DeleteOptions{})
	same(t, "phase", kind.Text(updated, "status", "phase"), "Terminating")
	if !d.HasFinalizers(updated) {
		t.Error("a namespace with finalizers is let go")
	}

	// The subresource finalize changes the finalizers and not the status.
	finalized := read(t, `{metadata: {name: dev}, spec: {}, status: {phase: Active}}`)
	v.Subresource("finalize").Revert(t.Context(), &resource.Change{Object: finalized, Old: updated})
	same(t, "finalized", finalized, read(t, `{metadata: {name: dev}, spec: {}, status: {phase: Terminating}}`))
	if d.HasFinalizers(finalized) {
		t.Error("a namespace without finalizers is held")
	}

	// The subresource status changes the status and not the finalizers.
	status := read(t, `{metadata: {name: dev}, spec: {}, status: {phase: Active}}`)
	v.Subresource("status").Revert(t.Context(), &resource.Change{Object: status, Old: created})
	same(t, "status", status, read(t, `{metadata: {name: dev}, spec: {finalizers: [example.com/x, kubernetes]}, status: {phase: Active}}`))
}

func TestNamespaceInvalid(t *testing.T) {
	d := definition(t, "namespaces")
	_, errs := write(t, d, read(t, `{metadata: {name: dev, finalizers: [orphan, mine, a/b]}, spec: {finalizers: [foo, A/B/C]}}`), nil)
	same(t, "create", messages(errs), []string{
		`metadata.finalizers[1]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified`,
		`spec.finalizers: Invalid value: "foo": name is neither a standard finalizer name nor is it fully qualified`,
		`spec.finalizers: Invalid value: "A/B/C": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
	})
	old := read(t, `{metadata: {name: dev}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`)
	same(t, "finalize", messages(d.Versions[0].Subresource("finalize").Validate(t.Context(), &resource.Change{Object: read(t, `{metadata: {name: dev}, spec: {finalizers: [kubernetes, foo]}, status: {phase: Active}}`), Old: old})), []string{
		`spec.finalizers[1]: Invalid value: "foo": name is neither a standard finalizer name nor is it fully qualified`,
	})
	status := d.Versions[0].Subresource("status")
	same(t, "status", messages(status.Validate(t.Context(), &resource.Change{Object: read(t, `{metadata: {name: dev}, spec: {finalizers: [kubernetes]}, status: {phase: Terminating}}`), Old: old})), []string{
		"status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty",
	})
	same(t, "status of a deleted one", messages(status.Validate(t.Context(), &resource.Change{Object: read(t, `{metadata: {name: dev, deletionTimestamp: "2026-01-02T03:04:05Z"}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`), Old: old})), []string{
		"status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty",
	})
}
