// Package bootstrap creates the initial FlowSchemas, PriorityLevelConfigurations and
// PriorityClasses of a cluster.
//
// As in kube-apiserver, the flow control objects are repaired: the mandatory ones always, the
// suggested ones as long as their auto-update annotation allows it. PriorityClasses are created
// once, when the controller starts.
package bootstrap

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/builtin/flowcontrol"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/scheduling"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/apply"
)

// Name is the name of the controller. In Kubernetes --controllers cannot name it.
const Name = "bootstrap-controller"

// The resources of the objects.
const (
	schemas = "flowschemas"
	levels  = "prioritylevelconfigurations"
	classes = "priorityclasses"
)

// flowManager is the field manager of flow control objects, as in Kubernetes.
const flowManager = "api-priority-and-fairness-config-producer-v1"

// specs returns the specs of the objects of flow control, by resource and name.
var specs = sync.OnceValue(func() map[string]map[string]object.Tree {
	return map[string]map[string]object.Tree{schemas: trees(flowcontrol.Schemas()), levels: trees(flowcontrol.Levels())}
})

func trees[T any](all map[string]T) map[string]object.Tree {
	out := map[string]object.Tree{}
	for name, v := range all {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		t := object.Tree{}
		if err := utiljson.Unmarshal(data, &t); err != nil { // the same number types as in other trees
			panic(err)
		}
		out[name] = t
	}
	return out
}

// A Controller creates the objects. A task is one object of a resource.
type Controller struct {
	objects  *controller.Objects
	queue    *controller.Queue
	prefixes map[string]string // key prefixes, by resource
	made     sync.Map          // names of processed PriorityClasses
}

// New returns the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{objects: o, queue: q, prefixes: map[string]string{
		schemas: o.Prefix(flowcontrolv1.GroupName, schemas), levels: o.Prefix(flowcontrolv1.GroupName, levels),
	}}
}

// Keys returns the key prefixes of the flow control objects.
func (c *Controller) Keys() []string { return []string{c.prefixes[schemas], c.prefixes[levels]} }

// Load does nothing; a Loader needs it.
func (c *Controller) Load() {}

// Loaded queues all objects.
func (c *Controller) Loaded() {
	for name := range scheduling.System {
		c.queue.Add(controller.Task{Do: classes, Key: name})
	}
	for _, what := range []string{levels, schemas} { // levels first: schemas refer to them
		for name := range specs()[what] {
			c.queue.Add(controller.Task{Do: what, Key: name})
		}
	}
}

var annotation = []byte(`"` + flowcontrolv1.AutoUpdateAnnotationKey + `"`)

// See queues an object that has changed or was deleted, and unknown objects with an auto-update
// annotation.
func (c *Controller) See(e *controller.Event) {
	for what, prefix := range c.prefixes {
		name, ok := strings.CutPrefix(e.Key, prefix)
		if !ok {
			continue
		}
		if known := specs()[what][name] != nil; known && !e.Loading || !known && bytes.Contains(e.Value, annotation) {
			c.queue.Add(controller.Task{Do: what, Key: name})
		}
	}
}

// Do creates or repairs an object.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	if t.Do == classes {
		return c.makeClass(ctx, t.Key)
	}
	d := c.objects.Lookup(flowcontrolv1.GroupName, t.Do)
	if d == nil {
		return nil
	}
	own := c.objects.ManagedBy(flowManager)
	found, err := own.Read(ctx, d.Key("", t.Key))
	if err != nil {
		return err
	}
	spec := specs()[t.Do][t.Key]
	switch {
	case spec == nil:
		return removeUnknown(ctx, own, d, found)
	case found == nil:
		return own.Create(ctx, d, "", object.Tree{
			"metadata": object.Tree{"name": t.Key, "annotations": object.Tree{flowcontrolv1.AutoUpdateAnnotationKey: "true"}},
			"spec":     object.CloneTree(spec),
		})
	}
	return own.Change(ctx, d, found.Key, found.UID, "", func(obj object.Tree) bool {
		says := kind.Text(obj, "metadata", "annotations", flowcontrolv1.AutoUpdateAnnotationKey)
		update, err := strconv.ParseBool(says)
		if err != nil {
			update = object.Generation(obj) == 1
		}
		keep := update || flowcontrol.IsFixed(t.Key)
		changed := false
		if err != nil || update != keep {
			kind.Put(kind.Child(kind.Child(obj, "metadata"), "annotations"), flowcontrolv1.AutoUpdateAnnotationKey, strconv.FormatBool(keep))
			changed = true
		}
		if want := wanted(spec, obj); keep && !reflect.DeepEqual(obj["spec"], any(want)) {
			obj["spec"] = want
			changed = true
		}
		return changed
	})
}

// wanted returns the desired spec of an object. The shares of the exempt level may be changed.
func wanted(spec, obj object.Tree) object.Tree {
	spec = object.CloneTree(spec)
	if share := kind.Tree(obj, "spec", "exempt"); share != nil && spec["exempt"] != nil {
		spec["exempt"] = share
	}
	return spec
}

// removeUnknown deletes an auto-updated object that is no longer part of the defaults.
func removeUnknown(ctx context.Context, o *controller.Objects, d *resource.Definition, found *controller.Header) error {
	if found == nil {
		return nil
	}
	var t object.Tree
	if err := utiljson.Unmarshal(found.JSON, &t); err != nil {
		return err
	}
	if kept, err := strconv.ParseBool(kind.Text(t, "metadata", "annotations", flowcontrolv1.AutoUpdateAnnotationKey)); err != nil || !kept {
		return nil
	}
	return o.Delete(ctx, d, found.Key, &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(found.UID)})
}

// makeClass creates a PriorityClass, once for each start.
func (c *Controller) makeClass(ctx context.Context, name string) error {
	d := c.objects.Lookup(schedulingv1.GroupName, classes)
	if _, done := c.made.Load(name); done || d == nil {
		return nil
	}
	own := c.objects.ManagedBy(apply.Server)
	if found, err := own.Read(ctx, d.Key("", name)); err != nil || found != nil {
		return err
	}
	class := scheduling.System[name]
	err := own.Create(ctx, d, "", object.Tree{
		"metadata": object.Tree{"name": name}, "value": int64(class.Value), "description": class.Description,
		"preemptionPolicy": string(corev1.PreemptLowerPriority),
	})
	if err == nil {
		c.made.Store(name, true)
	}
	return err
}
