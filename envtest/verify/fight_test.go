package verify

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// insisting keeps the size of a ConfigMap at a value.
func insisting(size, manager string) func(context.Context, *rest.Config) error {
	return reconciler(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		if m.Data["size"] == size {
			return ctrl.Result{}, nil
		}
		before := m.DeepCopy()
		m.Data["size"] = size
		return ctrl.Result{}, c.Patch(ctx, m, client.MergeFrom(before), client.FieldOwner(manager))
	}).start
}

// A report of changes without an end names the field and its managers.
func TestFight(t *testing.T) {
	r := Explore(t, World{Start: insisting("4", "one"), Others: []func(context.Context, *rest.Config) error{insisting("5", "two")}}, applyOne)
	if len(r.Findings) != 1 || r.Findings[0].Kind != Endless {
		t.Fatal(r.Findings)
	}
	f := r.Findings[0]
	for _, text := range []string{f.Text, f.Story[len(f.Story)-1].Text} {
		if !strings.Contains(text, "ConfigMap default/m: data.size alternates between ") || !strings.Contains(text, `"4" by program (manager "one")`) ||
			!strings.Contains(text, `"5" by other (manager "two")`) {
			t.Error(text)
		}
	}
}

// Two programs that create and delete one object fight, too. Values that only grow are no fight.
func TestFightOverObject(t *testing.T) {
	creates := reconciler(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, owned(c, m, secret(m, m.Name))))
	}).start
	deletes := reconciler(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		return ctrl.Result{}, client.IgnoreNotFound(c.Delete(ctx, secret(m, m.Name)))
	}).start
	r := Explore(t, World{Start: creates, Others: []func(context.Context, *rest.Config) error{deletes}}, applyOne)
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Text, "Secret default/m is ") || !strings.Contains(r.Findings[0].Text, "deleted by other") {
		t.Error(r.Findings)
	}
	grows := reconciler(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		return ctrl.Result{}, set(ctx, c, m, "size", m.Data["size"]+".")
	}).start
	if r = Explore(t, World{Start: grows}, applyOne); len(r.Findings) != 1 || strings.Contains(r.Findings[0].Text, "\n") {
		t.Error(r.Findings)
	}
}

// The managed fields of an object contain the fields of differences.
func TestOwns(t *testing.T) {
	const managed = `{"f:metadata":{"f:labels":{"f:example.com/a":{}}},"f:data":{"f:a.b":{}},"f:spec":{"f:atomic":{},
		"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{}}}},"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:status":{}}}}}`
	var fields map[string]any
	if err := json.Unmarshal([]byte(managed), &fields); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"metadata.labels.example.com/a": true, "metadata.labels.example.com/b": false, "data.a.b": true, "data.a": false, "spec.atomic.x": true,
		"spec.containers[web].image": true, "spec.containers[web].command": false, "spec.containers[db].image": false,
		"status.conditions[Ready].status": true, "status": true, "spec.containers[].image": true,
	} {
		if owns(fields, path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}
