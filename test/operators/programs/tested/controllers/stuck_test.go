//go:build verify

package controllers

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotscheme "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned/scheme"
	"github.com/kubernetes-csi/external-snapshotter/v8/pkg/utils"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	published "sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/anykind/anykind/envtest"
)

var assets = flag.String("assets", "", "folder with kube-apiserver and etcd, to repeat findings with them")

// A loss loses the response to the first creation of a content, and delays watches of contents until the program has
// handled the response to the second creation.
type loss struct {
	creates atomic.Int32
	over    chan struct{}
	end     sync.Once
}

func (l *loss) roundTrip(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/volumesnapshotcontents") {
		if l.creates.Load() > 1 && strings.Contains(r.URL.Path, "/volumesnapshots/") {
			l.finish()
		}
		return next.RoundTrip(r)
	}
	number := int32(0)
	if r.Method == http.MethodPost {
		number = l.creates.Add(1)
	}
	response, err := next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case number == 1:
		return nil, errors.Join(errors.New("connection reset"), response.Body.Close())
	case r.URL.Query().Get("watch") != "":
		response.Body = &late{response.Body, func() bool { return l.creates.Load() > 0 }, l.over}
	}
	return response, nil
}

func (l *loss) finish() { l.end.Do(func() { close(l.over) }) }

// late is the body of a watch. From begun on, its events wait for over.
type late struct {
	io.ReadCloser
	begun func() bool
	over  <-chan struct{}
}

func (b *late) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.begun() {
		<-b.over
	}
	return n, err
}

// A roundTrip answers a request by means of the next RoundTripper.
type roundTrip func(r *http.Request, next http.RoundTripper) (*http.Response, error)

// wrap returns a config whose requests are answered by f.
func wrap(config *rest.Config, f roundTrip) *rest.Config {
	c := rest.CopyConfig(config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return wrapped{f, next} })
	return c
}

type wrapped struct {
	roundTrip roundTrip
	next      http.RoundTripper
}

func (w wrapped) RoundTrip(r *http.Request) (*http.Response, error) { return w.roundTrip(r, w.next) }

// realServer starts a server with sockets and in real time, and with the definitions: kube-apiserver, or envtest's.
func realServer(t *testing.T, crds ...string) *rest.Config {
	if *assets == "" {
		return (&envtest.Environment{CRDDirectoryPaths: crds}).StartFor(t)
	}
	e := &published.Environment{BinaryAssetsDirectory: *assets, CRDDirectoryPaths: crds}
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	return config
}

// cluster starts a server with a volume that snapshots can be taken of, and returns a client of it.
func cluster(t *testing.T) (client.Client, *rest.Config) {
	config := realServer(t, directory(t, "github.com/kubernetes-csi/external-snapshotter/client/v8", "config/crd"))
	c, err := client.New(config, client.Options{Scheme: snapshotScheme()})
	if err != nil {
		t.Fatal(err)
	}
	create(t, c, aClass(snapshots.VolumeSnapshotContentDelete), aGroupClass())
	createVolume(t, c, "data")
	return c, config
}

// createVolume creates a volume, and a claim that is bound to it.
func createVolume(t *testing.T, c client.Client, name string) {
	t.Helper()
	volume, claim := aVolume()
	volume.Name, claim.Name, claim.Spec.VolumeName, volume.Spec.ClaimRef.Name = name, name, name, name
	create(t, c, volume, claim)
	if err := c.Status().Patch(t.Context(), claim, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Bound"}}`))); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// runSnapshotter runs snapshot-controller, and the fake of its driver, until the test ends.
func runSnapshotter(t *testing.T, theirs, others *rest.Config) {
	must(snapshotscheme.AddToScheme(scheme.Scheme))
	run(t, theirs, startSnapshotController)
	run(t, others, runDriver)
}

// run runs a program until the test ends.
func run(t *testing.T, config *rest.Config, start func(context.Context, *rest.Config) error) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := start(ctx, config); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); running.Wait() })
}

// The first finding of snapshot-controller in real time: a snapshot whose content is created twice is never ready. The next
// one is.
func TestStuckSnapshot(t *testing.T) {
	c, config := cluster(t)
	slow := &loss{over: make(chan struct{})}
	runSnapshotter(t, wrap(config, slow.roundTrip), config)
	t.Cleanup(slow.finish)
	create(t, c, aSnapshot("a"))
	until(t, func() bool { return slow.creates.Load() > 1 })
	create(t, c, aSnapshot("b"))
	until(t, func() bool { return isReady(t, c, "b") })
	if within(t, 3*time.Second, func() bool { return isReady(t, c, "a") }) {
		t.Error("a is ready: the finding is gone")
	}
}

// After a start of snapshot-controller, a VolumeGroupSnapshot with the name of a later VolumeSnapshot is not reconciled. One
// with a name of its own is.
func TestStuckGroup(t *testing.T) {
	c, config := cluster(t)
	create(t, c, aGroup("a"), aGroup("z"), aSnapshot("a"))
	runSnapshotter(t, config, config)
	until(t, func() bool { return isReady(t, c, "a") && isBound(t, c, "z") })
	create(t, c, aGroup("y"))
	until(t, func() bool { return isBound(t, c, "y") })
	if within(t, 3*time.Second, func() bool { return isBound(t, c, "a") }) {
		t.Error("the group a is bound: the finding is gone")
	}
}

// A deletion while the controller writes the status of a bound snapshot leaves the content of the user without the annotation
// that lets csi-snapshotter delete it. Without the delay, the content is gone.
func TestStuckContent(t *testing.T) {
	c, config := cluster(t)
	arrived, over := make(chan struct{}), make(chan struct{})
	arrives, release := sync.OnceFunc(func() { close(arrived) }), sync.OnceFunc(func() { close(over) })
	runSnapshotter(t, wrap(config, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/volumesnapshots/a/status") {
			arrives()
			<-over
		}
		return next.RoundTrip(r)
	}), config)
	t.Cleanup(release)
	for _, name := range []string{"a", "b"} {
		create(t, c, aContent(name))
		create(t, c, aBound(name))
		if name == "a" {
			select {
			case <-arrived:
			case <-time.After(time.Minute):
				t.Fatal("the controller writes no status")
			}
		} else {
			until(t, func() bool { return isReady(t, c, name) })
		}
		if err := c.Delete(t.Context(), aBound(name)); err != nil {
			t.Fatal(err)
		}
		if name == "a" {
			release()
		}
		until(t, func() bool { return isGone(t, c, aBound(name)) })
	}
	until(t, func() bool { return isGone(t, c, aContent("b")) })
	var stuck snapshots.VolumeSnapshotContent
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(aContent("a")), &stuck); err != nil || stuck.Annotations[utils.AnnVolumeSnapshotBeingDeleted] != "" {
		t.Errorf("%v, %v: the finding is gone", stuck.Annotations, err)
	}
}

// The finalizer of a claim stays if the VolumeSnapshot is deleted before the controller sees the finalizer. The next
// VolumeSnapshot of the claim removes it.
func TestStuckClaim(t *testing.T) {
	c, config := cluster(t)
	var begun atomic.Bool
	over := make(chan struct{})
	release := sync.OnceFunc(func() { close(over) })
	runSnapshotter(t, wrap(config, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/persistentvolumeclaims/data") {
			begun.Store(true)
		}
		response, err := next.RoundTrip(r)
		if err == nil && strings.HasSuffix(r.URL.Path, "/persistentvolumeclaims") && r.URL.Query().Get("watch") != "" {
			response.Body = &late{response.Body, begun.Load, over}
		}
		return response, err
	}), config)
	t.Cleanup(release)
	protected := func(name string) bool {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta(name)}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			t.Error(err)
		}
		return slices.Contains(claim.Finalizers, utils.PVCFinalizer)
	}
	take := func(name, claim string) *snapshots.VolumeSnapshot {
		s := aSnapshot(name)
		s.Spec.Source.PersistentVolumeClaimName = &claim
		create(t, c, s)
		until(t, func() bool { return isReady(t, c, name) })
		return s
	}
	s := take("a", "data")
	if err := c.Delete(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return isGone(t, c, s) })
	release()
	createVolume(t, c, "later")
	take("b", "later") // its claim comes after the late event
	if within(t, 3*time.Second, func() bool { return !protected("data") }) {
		t.Error("the claim has no finalizer: the finding is gone")
	}
	take("c", "data")
	until(t, func() bool { return !protected("data") })
}

func isGone(t *testing.T, c client.Client, o client.Object) bool {
	err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o)
	if client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
	return apierrors.IsNotFound(err)
}

func isBound(t *testing.T, c client.Client, name string) bool {
	g := aGroup(name)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(g), g); err != nil {
		t.Error(err)
	}
	return g.Status != nil && g.Status.BoundVolumeGroupSnapshotContentName != nil
}

func until(t *testing.T, holds func() bool) {
	t.Helper()
	if !within(t, time.Minute, holds) {
		t.Fatal("the condition does not hold within a minute")
	}
}

// within reports whether a condition holds within a time.
func within(t *testing.T, d time.Duration, holds func() bool) bool {
	return wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, d, true, func(context.Context) (bool, error) {
		return holds(), nil
	}) == nil
}

func isReady(t *testing.T, c client.Client, name string) bool {
	var s snapshots.VolumeSnapshot
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(aSnapshot(name)), &s); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	return s.Status != nil && s.Status.ReadyToUse != nil && *s.Status.ReadyToUse
}
