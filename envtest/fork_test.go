package envtest

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Forks of one server run in parallel and do not see each other.
func TestFork(t *testing.T) {
	t.Parallel()
	e := &Environment{CRDDirectoryPaths: []string{"testdata/crds"}, Controllers: []string{"namespace-controller"}}
	c := clientOf(t, e.StartFor(t))
	if err := c.Create(t.Context(), gadget("template", 3)); err != nil {
		t.Fatal(err)
	}
	t.Run("forks", func(t *testing.T) {
		for i := range 4 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				f := e.ForkFor(t)
				c, ctx := clientOf(t, f.Config), t.Context()
				if err := c.Create(ctx, gadget("template", 1)); !apierrors.IsAlreadyExists(err) {
					t.Errorf("an object of the server: %v", err)
				}
				if err := c.Create(ctx, gadget("own", int64(i+1))); err != nil {
					t.Errorf("an object of the fork: %v", err)
				}
				own := gadget("own", 0)
				if err := c.Get(ctx, client.ObjectKeyFromObject(own), own); err != nil {
					t.Error(err)
				}
				if size, _, _ := nested(own.Object, "spec", "size"); size != int64(i+1) {
					t.Errorf("its size is %v", size)
				}
				namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed"}}
				if err := errors.Join(f.WaitIdle(ctx), c.Create(ctx, namespace), c.Delete(ctx, namespace), f.WaitIdle(ctx)); err != nil {
					t.Fatal(err)
				}
				if err := c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
					t.Errorf("a namespace that the controllers remove: %v", err)
				}
			})
		}
	})
	own := gadget("own", 0)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(own), own); !apierrors.IsNotFound(err) {
		t.Errorf("an object of a fork in the server: %v", err)
	}
}

// A fork runs in a bubble with its server, and ends with it.
func TestForkInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Environment{InMemory: true}
		e.StartFor(t)
		f, err := e.Fork()
		if err != nil {
			t.Fatal(err)
		}
		c := clientOf(t, f.Config)
		if err := c.Create(t.Context(), configMap("x")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := c.Delete(t.Context(), configMap("x")); err != nil {
			t.Fatal(err)
		}
	})
}
