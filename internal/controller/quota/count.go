package quota

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/usage"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// count counts the usage of a quota, and corrects its status.
func (c *Controller) count(ctx context.Context, task controller.Task) error {
	if _, err := c.Cache.Fresh(ctx); err != nil {
		return err
	}
	q, err := c.read(ctx, task.Key, kv.Latest)
	if err != nil || q == nil {
		return err
	}
	kinds, err := c.kinds(ctx, q.Spec.Hard)
	if err != nil {
		return err
	}
	c.remember(task.Key, func(k *known) { k.scopes, k.kinds = usage.Scopes(&q.Spec), kinds })
	// Events after this time count as changes; earlier ones are in the count.
	began := c.objects.Now()
	revision, err := c.Cache.Fresh(ctx)
	if err != nil {
		return err
	}
	now, err := c.read(ctx, task.Key, revision)
	if err != nil || now == nil {
		return err
	}
	there, err := c.sum(ctx, now, kinds, revision)
	if err != nil {
		return err
	}
	c.remember(task.Key, func(k *known) { k.took = c.objects.Now().Sub(began) })
	return c.correct(ctx, task, correction{now, there})
}

// read returns a quota as of a revision, or nil.
func (c *Controller) read(ctx context.Context, key string, revision int64) (*corev1.ResourceQuota, error) {
	snapshot, err := c.Cache.Resource(c.kind.StoragePrefix).Snapshot(ctx, revision)
	if err != nil {
		return nil, err
	}
	o := snapshot.Get(key)
	if o == nil || o.Err() != nil {
		return nil, nil
	}
	data, err := o.JSON()
	if err != nil {
		return nil, err
	}
	q := &corev1.ResourceQuota{}
	return q, json.Unmarshal(data, q)
}

// A counted kind is a kind that a quota limits.
type counted struct {
	prefix string               // key prefix of its objects
	kind   *resource.Definition // nil if only the number of objects counts
	usage.Evaluator
}

// kinds returns the kinds that a quota limits.
func (c *Controller) kinds(ctx context.Context, hard corev1.ResourceList) (all []counted, err error) {
	found := map[schema.GroupResource]bool{}
	for _, name := range kind.SortedKeys(hard) {
		resources, err := c.Evaluators.Resources(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, r := range resources {
			if found[r] {
				continue
			}
			found[r] = true
			k := counted{kind: c.objects.Lookup(r.Group, r.Resource)}
			if k.Evaluator, err = c.Evaluators.Of(ctx, r); err != nil {
				return nil, err
			}
			_, alike := usage.Alike(k.Evaluator)
			switch {
			case k.Evaluator == nil || k.kind == nil && !alike || k.kind != nil && (!k.kind.Namespaced || k.kind.StoragePrefix == ""):
				continue
			case k.kind != nil:
				k.prefix = k.kind.StoragePrefix
			case strings.Contains(r.Group, "."):
				k.prefix = resource.CustomPrefix(r.Group, r.Resource) // the kind may be defined later
			default:
				continue
			}
			all = append(all, k)
		}
	}
	return all, nil
}

// remember updates the state of a quota, if it exists.
func (c *Controller) remember(key string, change func(*known)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.known[controller.NamespaceOf(key)][key]; k != nil {
		change(k)
	}
}

// sum returns the usage of a quota at a revision. Unknown resources are missing from it.
func (c *Controller) sum(ctx context.Context, q *corev1.ResourceQuota, kinds []counted, revision int64) (corev1.ResourceList, error) {
	sum := corev1.ResourceList{}
	for _, k := range kinds {
		snapshot, err := c.Cache.Resource(k.prefix).Snapshot(ctx, revision)
		if err != nil {
			return nil, err
		}
		limited := corev1.ResourceList{}
		for name := range q.Spec.Hard {
			if k.Limits(name) {
				limited[name] = quantity.Quantity{Format: quantity.DecimalSI}
			}
		}
		if err := c.add(ctx, q, k, snapshot, limited); err != nil {
			return nil, err
		}
		usage.Add(sum, limited)
	}
	return sum, nil
}

// add adds the usage of the objects of a kind to list.
func (c *Controller) add(ctx context.Context, q *corev1.ResourceQuota, k counted, snapshot *watchcache.Snapshot, list corev1.ResourceList) error {
	scopes, within := usage.Scopes(&q.Spec), k.prefix+q.Namespace+"/"
	if each, ok := usage.Alike(k.Evaluator); ok {
		if n := int64(snapshot.Len(within, "")); len(scopes) == 0 {
			for name := range usage.Part(each, list) {
				list[name] = *quantity.NewQuantity(n, quantity.DecimalSI)
			}
		}
		return nil
	}
	for o := range snapshot.Scan(within, "") {
		measured, err := c.measure(ctx, k, o)
		if err != nil {
			continue // an unreadable object uses nothing
		}
		in, err := usage.Matches(measured, scopes)
		if err != nil {
			return err
		}
		if in {
			usage.Add(list, usage.Part(measured.Usage(), list))
		}
	}
	return ctx.Err()
}

func (c *Controller) measure(ctx context.Context, k counted, o *watchcache.Object) (usage.Object, error) {
	shown, err := c.objects.Registry.View(ctx, k.kind, k.kind.StorageVersion(), o)
	if err != nil {
		return nil, err
	}
	return k.Read(ctx, func(into any) error { return json.Unmarshal(shown.JSON, into) })
}

// A correction is the counted usage of a quota, with the quota at the time of the count.
type correction struct {
	was   *corev1.ResourceQuota
	there corev1.ResourceList
}

// correct writes a correction. If it is outdated, the quota is counted again.
func (c *Controller) correct(ctx context.Context, task controller.Task, of correction) error {
	_, end, err := c.Turns.Take(ctx, of.was.Namespace)
	if err != nil {
		return err
	}
	defer end(0)
	holds := true
	err = c.objects.Change(ctx, c.kind, task.Key, string(of.was.UID), "status", func(t object.Tree) bool {
		now := kind.ValueOf[corev1.ResourceQuota](t)
		var used corev1.ResourceList
		if used, holds = of.used(now); !holds {
			return false
		}
		if equality.Semantic.DeepEqual(now.Spec.Hard, now.Status.Hard) && usage.Equal(used, now.Status.Used) && now.Status.Used != nil {
			return false
		}
		t["status"] = object.Tree{"hard": usage.Tree(now.Spec.Hard), "used": usage.Tree(used)}
		return true
	})
	if err == nil && !holds {
		c.queue.Add(task)
	}
	return err
}

// used returns the present usage of a quota: the counted usage plus later charges. Charges only
// increase; a decrease means that another server has corrected the quota, and holds is false.
func (c correction) used(now *corev1.ResourceQuota) (used corev1.ResourceList, holds bool) {
	if !equality.Semantic.DeepEqual(now.Spec, c.was.Spec) {
		return nil, false
	}
	used = usage.Part(now.Status.Used, now.Spec.Hard)
	for name, amount := range c.there {
		charged, before := now.Status.Used[name], c.was.Status.Used[name]
		charged = charged.DeepCopy()
		if charged.Sub(before); charged.Sign() < 0 {
			return nil, false
		}
		amount = amount.DeepCopy()
		amount.Add(charged)
		used[name] = amount
	}
	return maps.Clone(used), true
}
