// Package apiservice maintains an APIService for each group version that the server itself serves,
// of built-in kinds and of custom resources.
//
// As in kube-apiserver, APIServices of built-in kinds are synced once when the controller starts;
// users may change them later. Those of custom resources follow the CustomResourceDefinitions, and
// are created again after a deletion.
package apiservice

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/apply"
)

// Name is the name of the controller. In Kubernetes --controllers cannot name it.
const Name = "kube-apiserver-autoregistration"

const (
	group = "apiregistration.k8s.io"
	// managed is the label of maintained APIServices. Its value is the mode of syncing.
	managed = "kube-aggregator.kubernetes.io/automanaged"
	// atStart is the value for built-in kinds, and always the value for custom resources.
	atStart, always = "onstart", "true"
)

// A Controller maintains the APIServices. The key of its tasks is the name of an API group.
type Controller struct {
	objects     *controller.Objects
	queue       *controller.Queue
	prefix      string // key prefix of APIServices
	definitions string // key prefix of CustomResourceDefinitions

	mu sync.Mutex
	// kept has the names of the APIServices with the label.
	kept map[string]bool
	// groups are the groups that the running load has found.
	groups map[string]bool
	// begun has the names of the APIServices synced since the start.
	begun map[string]bool
}

// New returns the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{
		objects: o.ManagedBy(apply.Server), queue: q, prefix: o.Prefix(group, "apiservices"), definitions: o.DefinitionPrefix(),
		kept: map[string]bool{}, begun: map[string]bool{},
	}
}

// Keys returns the key prefixes of APIServices and CustomResourceDefinitions.
func (c *Controller) Keys() []string { return []string{c.prefix, c.definitions} }

// Load begins a new list of stored groups.
func (c *Controller) Load() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept, c.groups = map[string]bool{}, map[string]bool{}
}

// Loaded queues all groups.
func (c *Controller) Loaded() {
	c.mu.Lock()
	all := c.groups
	c.groups = nil
	c.mu.Unlock()
	for _, g := range c.objects.Catalog.Set().Groups() {
		all[g.Name] = true
	}
	for name := range all {
		c.queue.Add(controller.Task{Key: name})
	}
}

var label = []byte(`"` + managed + `"`)

// See records labelled APIServices and queues the group of the object.
func (c *Controller) See(e *controller.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, isService := strings.CutPrefix(e.Key, c.prefix)
	if isService {
		if bytes.Contains(e.Value, label) {
			c.kept[name] = true
		} else {
			delete(c.kept, name)
		}
	} else {
		name = strings.TrimPrefix(e.Key, c.definitions)
	}
	_, of, _ := strings.Cut(name, ".")
	switch {
	case e.Loading && (!isService || c.kept[name]):
		c.groups[of] = true
	case !e.Loading:
		c.queue.Add(controller.Task{Key: of})
	}
}

// Do creates, updates or deletes the APIServices of a group.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	if err := c.objects.Refresh(ctx); err != nil {
		return err
	}
	d := c.objects.Lookup(group, "apiservices")
	if d == nil {
		return nil
	}
	wanted := served(c.objects.Catalog.Set(), t.Key)
	for _, want := range wanted {
		if err := c.keep(ctx, d, want); err != nil {
			return err
		}
	}
	for _, name := range c.leftOf(t.Key, wanted) {
		if err := c.remove(ctx, d, name); err != nil {
			return err
		}
	}
	return nil
}

// served returns the desired APIServices of a group.
func served(set *resource.Set, name string) (out []object.Tree) {
	g := set.Group(name)
	if g == nil {
		return nil
	}
	for _, version := range g.Versions {
		d, v := g.Leading(version)
		if v.Priority == 0 {
			continue
		}
		when := always
		if d.Dialect == resource.CompiledIn {
			when = atStart
		}
		spec := object.Tree{"version": version, "groupPriorityMinimum": int64(d.GroupPriority), "versionPriority": int64(v.Priority)}
		if name != "" {
			spec["group"] = name
		}
		out = append(out, object.Tree{
			"metadata": object.Tree{"name": version + "." + name, "labels": object.Tree{managed: when}}, "spec": spec,
		})
	}
	return out
}

// leftOf returns the labelled APIServices of a group that are not wanted.
func (c *Controller) leftOf(name string, wanted []object.Tree) (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for kept := range c.kept {
		_, of, _ := strings.Cut(kept, ".")
		if of == name && !slices.ContainsFunc(wanted, func(t object.Tree) bool { return object.Name(t) == kept }) {
			out = append(out, kept)
		}
	}
	return out
}

// first reports whether an APIService is processed for the first time since the start.
func (c *Controller) first(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.begun[name]
}

func (c *Controller) keep(ctx context.Context, d *resource.Definition, want object.Tree) error {
	name := object.Name(want)
	if kind.Text(want, "metadata", "labels", managed) == atStart && !c.first(name) {
		return nil
	}
	key := d.Key("", name)
	found, err := c.objects.Read(ctx, key)
	switch {
	case err != nil:
		return err
	case found == nil:
		err = c.objects.Create(ctx, d, "", want)
	default:
		err = c.objects.Change(ctx, d, key, found.UID, "", func(t object.Tree) bool {
			if kind.Text(t, "metadata", "labels", managed) == "" || reflect.DeepEqual(t["spec"], want["spec"]) {
				return false
			}
			t["spec"] = want["spec"]
			return true
		})
	}
	if err == nil {
		c.mu.Lock()
		c.begun[name] = true
		c.mu.Unlock()
	}
	return err
}

// remove deletes the APIService of a version that is no longer served.
func (c *Controller) remove(ctx context.Context, d *resource.Definition, name string) error {
	key := d.Key("", name)
	found, err := c.objects.Read(ctx, key)
	if err != nil || found == nil || !bytes.Contains(found.JSON, label) {
		return err
	}
	return c.objects.Delete(ctx, d, key, &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(found.UID)})
}
