package envtest_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/envtest"
)

// Tests with a server each run in parallel, and do not see each other's objects.
func TestServerPerTest(t *testing.T) {
	for _, color := range []string{"red", "green", "blue"} {
		t.Run(color, func(t *testing.T) {
			t.Parallel()
			testEnv := &envtest.Environment{CRDDirectoryPaths: []string{"testdata/crds"}}
			c := newClient(testEnv.StartFor(t))
			if err := c.Create(t.Context(), settings(color)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Hours pass at once, for the server as for its clients.
func TestHoursPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		testEnv := &envtest.Environment{InMemory: true}
		c := newClient(testEnv.StartFor(t))
		event := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "started"},
			InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "default", Name: "settings"},
		}
		if err := c.Create(t.Context(), event); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(event), event); !apierrors.IsNotFound(err) {
			t.Errorf("an event is there after two hours: %v", err)
		}
	})
}
