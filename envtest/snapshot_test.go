package envtest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// prepared returns a Snapshot of a server with a definition and an object, and a token from that
// server.
func prepared(t *testing.T) (*Snapshot, string) {
	t.Helper()
	e := &Environment{CRDDirectoryPaths: []string{"testdata/crds"}}
	c := clientOf(t, e.StartFor(t))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot"}}
	token := &authenticationv1.TokenRequest{}
	if err := errors.Join(c.Create(t.Context(), gadget("template", 3)), c.Create(t.Context(), account)); err != nil {
		t.Fatal(err)
	}
	if err := c.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	taken, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), gadget("later", 3)); err != nil {
		t.Fatal(err)
	}
	return taken, token.Status.Token
}

// Servers from one snapshot run in parallel and do not see each other.
func TestFrom(t *testing.T) {
	t.Parallel()
	from, token := prepared(t)
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			e := &Environment{From: from}
			config := e.StartFor(t)
			c, ctx := clientOf(t, config), t.Context()
			if err := c.Create(ctx, gadget("template", 1)); !apierrors.IsAlreadyExists(err) {
				t.Errorf("what was there: %v", err)
			}
			if err := c.Create(ctx, gadget("later", int64(i+1))); err != nil {
				t.Errorf("what was not there: %v", err)
			}
			if err := c.Create(ctx, gadget("bad", 0)); !apierrors.IsInvalid(err) {
				t.Errorf("what cannot be: %v", err)
			}
			later := gadget("later", 0)
			if err := c.Get(ctx, client.ObjectKeyFromObject(later), later); err != nil {
				t.Error(err)
			}
			if size, _, _ := nested(later.Object, "spec", "size"); size != int64(i+1) {
				t.Errorf("its size is %v", size)
			}
			robot := rest.AnonymousClientConfig(config)
			robot.BearerToken = token
			review := &authenticationv1.SelfSubjectReview{}
			if err := clientOf(t, robot).Create(ctx, review); err != nil || review.Status.UserInfo.Username != "system:serviceaccount:default:robot" {
				t.Errorf("%v, %v", review.Status.UserInfo.Username, err)
			}
		})
	}
}

func nested(object map[string]any, field, below string) (any, bool, error) {
	inner, ok := object[field].(map[string]any)
	return inner[below], ok, nil
}

// A snapshot is consistent, also during writes.
func TestSnapshotWhileOthersWrite(t *testing.T) {
	t.Parallel()
	e := &Environment{}
	c := clientOf(t, e.StartFor(t))
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := range 40 {
				if err := c.Create(t.Context(), configMap(fmt.Sprintf("w%d-%02d", w, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		taken, err := e.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		other := &Environment{From: taken}
		var list corev1.ConfigMapList
		if err := clientOf(t, other.StartFor(t)).List(t.Context(), &list, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		next := map[string]int{}
		for _, item := range list.Items {
			writer, number, ok := strings.Cut(item.Name, "-")
			if !ok || !strings.HasPrefix(writer, "w") {
				continue
			}
			if number != fmt.Sprintf("%02d", next[writer]) {
				t.Errorf("%s is there without the one before", item.Name)
			}
			next[writer]++
		}
	}
	writers.Wait()
}

// A snapshot works in a bubble whose clock differs from that of its server.
func TestFromInBubble(t *testing.T) {
	t.Parallel()
	from, _ := prepared(t)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			e := &Environment{From: from, InMemory: true}
			c := clientOf(t, e.StartFor(t))
			if err := c.Create(t.Context(), gadget("mine", 2)); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Hour)
			if err := c.Create(t.Context(), gadget("bad", 0)); !apierrors.IsInvalid(err) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A server in memory rejects unsupported options.
func TestInMemoryRefuses(t *testing.T) {
	t.Parallel()
	e := &Environment{InMemory: true}
	e.WebhookInstallOptions.Paths = []string{"testdata/crds"}
	if _, err := e.Start(); err == nil || !strings.Contains(err.Error(), "webhooks") {
		t.Errorf("%v", err)
	}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
}
