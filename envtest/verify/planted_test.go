package verify

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// A planted bug is a controller with one defect of a known pattern. Without faults, it works.
type planted struct {
	pattern string
	life    func() reconciler // one life of the program
	play    func(*Scenario)   // nil is applyOne
}

// stateless is a controller without state in memory.
func stateless(f reconciler) func() reconciler { return func() reconciler { return f } }

func (p planted) start(ctx context.Context, c *rest.Config) error { return p.life().start(ctx, c) }

const finalizer = "example.com/clean"

// secret is a Secret of a ConfigMap, without a reference to it.
func secret(m *corev1.ConfigMap, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: name, Labels: map[string]string{"of": m.Name}}}
}

// secrets lists the Secrets of a ConfigMap from the cache.
func secrets(ctx context.Context, c client.Client, m *corev1.ConfigMap) ([]corev1.Secret, error) {
	var all corev1.SecretList
	err := c.List(ctx, &all, client.InNamespace(m.Namespace), client.MatchingLabels{"of": m.Name})
	return all.Items, err
}

// owned makes a Secret belong to a ConfigMap.
func owned(c client.Client, m *corev1.ConfigMap, s *corev1.Secret) *corev1.Secret {
	_ = ctrl.SetControllerReference(m, s, c.Scheme())
	return s
}

// set sets one value of the ConfigMap, as a status.
func set(ctx context.Context, c client.Client, m *corev1.ConfigMap, key, value string) error {
	if m.Data[key] == value {
		return nil
	}
	m.Data = maps.Clone(m.Data)
	if m.Data == nil {
		m.Data = map[string]string{}
	}
	m.Data[key] = value
	return c.Update(ctx, m)
}

func resize(s *Scenario) {
	applyOne(s)
	s.Apply(configMap("m", map[string]string{"size": "5"}))
	s.Settle()
}

func remove(s *Scenario) {
	applyOne(s)
	s.Delete(configMap("m", nil))
	s.Settle()
}

var plantedBugs = []planted{
	{"create with a generated name, counted in the cache", stateless(three), nil},

	{"create with a generated name, then record it", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		if m.Annotations["secret"] != "" {
			return ctrl.Result{}, nil
		}
		s := owned(c, m, secret(m, ""))
		s.GenerateName = "s-"
		if err := c.Create(ctx, s); err != nil {
			return ctrl.Result{}, err
		}
		m.Annotations = map[string]string{"secret": "known"}
		return ctrl.Result{}, c.Update(ctx, m)
	}), nil},

	{"status before the work", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		if m.Data["ready"] == "yes" {
			return ctrl.Result{}, nil
		}
		if err := set(ctx, c, m, "ready", "yes"); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, secret(m, m.Name)))
	}), nil},

	{"finalizer removed before the cleanup", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		if m.DeletionTimestamp == nil {
			if controllerutil.AddFinalizer(m, finalizer) {
				return ctrl.Result{}, c.Update(ctx, m)
			}
			return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, secret(m, m.Name)))
		}
		if controllerutil.RemoveFinalizer(m, finalizer) {
			if err := c.Update(ctx, m); err != nil {
				return ctrl.Result{}, err
			}
		}
		return ctrl.Result{}, client.IgnoreNotFound(c.Delete(ctx, secret(m, m.Name)))
	}), remove},

	{"the object created before the finalizer", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		if m.DeletionTimestamp != nil {
			if err := c.Delete(ctx, secret(m, m.Name)); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
			controllerutil.RemoveFinalizer(m, finalizer)
			return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, m))
		}
		if err := client.IgnoreAlreadyExists(c.Create(ctx, secret(m, m.Name))); err != nil {
			return ctrl.Result{}, err
		}
		if controllerutil.AddFinalizer(m, finalizer) {
			return ctrl.Result{}, c.Update(ctx, m)
		}
		return ctrl.Result{}, nil
	}), remove},

	{"cleanup of objects that only the memory knows", func() reconciler {
		created := map[string]bool{}
		return func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
			switch {
			case m.DeletionTimestamp == nil && controllerutil.AddFinalizer(m, finalizer):
				return ctrl.Result{}, c.Update(ctx, m)
			case m.DeletionTimestamp == nil:
				created[m.Name] = true
				return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, secret(m, m.Name+"-"+m.Data["size"])))
			}
			if created[m.Name] {
				if err := client.IgnoreNotFound(c.Delete(ctx, secret(m, m.Name+"-"+m.Data["size"]))); err != nil {
					return ctrl.Result{}, err
				}
			}
			controllerutil.RemoveFinalizer(m, finalizer)
			return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, m))
		}
	}, remove},

	{"done once, as the memory says", func() reconciler {
		done := map[string]bool{}
		return func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
			key := m.Name + m.Data["size"]
			if done[key] {
				return ctrl.Result{}, nil
			}
			done[key] = true // also if it fails
			_, err := named(ctx, c, m)
			return ctrl.Result{}, err
		}
	}, resize},

	{"a label in a second write", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		all, err := secrets(ctx, c, m)
		if err != nil || len(all) > 0 {
			return ctrl.Result{}, err
		}
		s := owned(c, m, secret(m, ""))
		s.GenerateName, s.Labels = "s-", nil
		if err := c.Create(ctx, s); err != nil {
			return ctrl.Result{}, err
		}
		s.Labels = map[string]string{"of": m.Name}
		return ctrl.Result{}, c.Update(ctx, s)
	}), nil},

	{"an error that is swallowed", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		_, _ = named(ctx, c, m)
		return ctrl.Result{}, nil
	}), nil},

	{"AlreadyExists means done", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		s := secret(m, m.Name)
		s.Data = map[string][]byte{"size": []byte(m.Data["size"])}
		if m.Data["applied"] == m.Data["size"] {
			return ctrl.Result{}, nil
		}
		err := c.Create(ctx, s)
		if apierrors.IsAlreadyExists(err) && m.Data["applied"] != "" {
			err = c.Update(ctx, s)
		}
		if client.IgnoreAlreadyExists(err) != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, set(ctx, c, m, "applied", m.Data["size"])
	}), resize},

	{"a counter of reconciliations", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		s := secret(m, m.Name)
		if err := c.Create(ctx, s); apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, set(ctx, c, m, "created", m.Data["created"]+"1")
	}), nil},

	{"an entry that is appended again", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		s := secret(m, m.Name)
		if err := c.Get(ctx, client.ObjectKeyFromObject(s), s); !apierrors.IsNotFound(err) {
			return ctrl.Result{}, err
		}
		patch := client.MergeFrom(m.DeepCopy())
		m.Data = map[string]string{"size": m.Data["size"], "log": m.Data["log"] + "created,"}
		if err := c.Patch(ctx, m, patch); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, c.Create(ctx, s)
	}), nil},

	{"an overwrite with an old object", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		if m.Labels["seen"] == m.Data["size"] {
			return ctrl.Result{}, nil
		}
		m.Labels["seen"], m.ResourceVersion = m.Data["size"], ""
		return ctrl.Result{}, c.Update(ctx, m)
	}), resize},

	{"a failure means that the object is gone", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		if err := c.Create(ctx, secret(m, m.Name)); err != nil && !apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, client.IgnoreNotFound(c.Delete(ctx, m))
		}
		return ctrl.Result{}, nil
	}), nil},

	{"no attempt after the first failure", func() reconciler {
		failed := false
		return func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
			if failed {
				return ctrl.Result{}, nil
			}
			_, err := named(ctx, c, m)
			failed = err != nil
			return ctrl.Result{}, err
		}
	}, nil},

	{"a hash stored before the change", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		if m.Annotations["hash"] == m.Data["size"] {
			return ctrl.Result{}, nil
		}
		m.Annotations = map[string]string{"hash": m.Data["size"]}
		if err := c.Update(ctx, m); err != nil {
			return ctrl.Result{}, err
		}
		return named(ctx, c, m)
	}), resize},

	{"an owner reference in a second write", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		s := secret(m, m.Name)
		if err := c.Get(ctx, client.ObjectKeyFromObject(s), s); !apierrors.IsNotFound(err) || m.DeletionTimestamp != nil {
			return ctrl.Result{}, err
		}
		if err := c.Create(ctx, s); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, c.Update(ctx, owned(c, m, s))
	}), remove},

	{"replacement in two steps without a look at the first", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		old := secret(m, m.Name)
		err := c.Get(ctx, client.ObjectKeyFromObject(old), old)
		if err == nil && string(old.Data["size"]) == m.Data["size"] || err == nil && m.Data["replaced"] == m.Data["size"] {
			return ctrl.Result{}, nil
		}
		if err == nil {
			if err := set(ctx, c, m, "replaced", m.Data["size"]); err != nil {
				return ctrl.Result{}, err
			}
			if err := c.Delete(ctx, old); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
		}
		s := secret(m, m.Name)
		s.Data = map[string][]byte{"size": []byte(m.Data["size"])}
		return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, s))
	}), resize},

	{"work after the time of a timer in memory", func() reconciler {
		began := time.Time{}
		return func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
			if m.Data["phase"] == "" {
				began = time.Now()
				return ctrl.Result{RequeueAfter: 5 * time.Second}, set(ctx, c, m, "phase", "waiting")
			}
			if m.Data["phase"] == "waiting" && !began.IsZero() && time.Since(began) >= 5*time.Second {
				return ctrl.Result{}, set(ctx, c, m, "phase", "done")
			}
			return ctrl.Result{}, nil
		}
	}, nil},

	{"a child that is deleted by the name of an old state", stateless(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		all, err := secrets(ctx, c, m)
		if err != nil {
			return ctrl.Result{}, err
		}
		name := m.Name + "-" + m.Data["size"]
		if m.Data["current"] != name {
			if err := client.IgnoreAlreadyExists(c.Create(ctx, secret(m, name))); err != nil {
				return ctrl.Result{}, err
			}
			if err := set(ctx, c, m, "current", name); err != nil {
				return ctrl.Result{}, err
			}
			for _, s := range all { // those before the new one
				if s.Name != name {
					if err := c.Delete(ctx, &s); err != nil {
						return ctrl.Result{}, err
					}
				}
			}
		}
		return ctrl.Result{}, nil
	}), resize},
}

// Each planted bug is found, by a plan with few faults.
func TestPlanted(t *testing.T) {
	for i, p := range plantedBugs {
		if testing.Short() && i%2 > 0 {
			continue
		}
		t.Run(strings.ReplaceAll(p.pattern, " ", "-"), func(t *testing.T) {
			play := p.play
			if play == nil {
				play = applyOne
			}
			began := time.Now()
			r := Explore(t, World{Start: p.start, Findings: 1, Plans: 150}, play)
			if len(r.Findings) != 1 || len(r.Findings[0].Plan) == 0 {
				t.Fatalf("%d plans for %d writes: %v", r.Plans, len(r.Writes), r.Findings)
			}
			f := r.Findings[0]
			t.Logf("plan %d of at most %d, %d ms: %q, %d lines: %s", f.At, 150, time.Since(began).Milliseconds(), f.Plan, len(f.Story), strings.ReplaceAll(f.Text, "\n", "; "))
			if f.Shown == 0 || slices.Contains([]ProblemKind{Exits, Panics}, f.Kind) {
				t.Error(f)
			}
		})
	}
}
