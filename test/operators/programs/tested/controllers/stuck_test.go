//go:build verify

package controllers

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotscheme "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned/scheme"
	"github.com/kubernetes-csi/external-snapshotter/v8/pkg/utils"
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
	next    http.RoundTripper
	creates atomic.Int32
	over    chan struct{}
	end     sync.Once
}

func (l *loss) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/volumesnapshotcontents") {
		if l.creates.Load() > 1 && strings.Contains(r.URL.Path, "/volumesnapshots/") {
			l.finish()
		}
		return l.next.RoundTrip(r)
	}
	number := int32(0)
	if r.Method == http.MethodPost {
		number = l.creates.Add(1)
	}
	response, err := l.next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case number == 1:
		return nil, errors.Join(errors.New("connection reset"), response.Body.Close())
	case r.URL.Query().Get("watch") != "":
		response.Body = &late{response.Body, l}
	}
	return response, nil
}

func (l *loss) finish() { l.end.Do(func() { close(l.over) }) }

// late is the body of a watch that a loss delays.
type late struct {
	io.ReadCloser
	loss *loss
}

func (b *late) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.loss.creates.Load() > 0 {
		<-b.loss.over
	}
	return n, err
}

// realServer starts a server with sockets and in real time: kube-apiserver, or envtest's.
func realServer(t *testing.T) *rest.Config {
	crds := []string{directory(t, "github.com/kubernetes-csi/external-snapshotter/client/v8", "config/crd")}
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
	config := realServer(t)
	c, err := client.New(config, client.Options{Scheme: snapshotScheme()})
	if err != nil {
		t.Fatal(err)
	}
	volume, claim := aVolume()
	create(t, c, aClass(snapshots.VolumeSnapshotContentDelete), aGroupClass(), volume, claim)
	if err := c.Status().Patch(t.Context(), claim, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Bound"}}`))); err != nil {
		t.Fatal(err)
	}
	return c, config
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs snapshot-controller, and the fake of its driver, until the test ends.
func run(t *testing.T, theirs, others *rest.Config) {
	must(snapshotscheme.AddToScheme(scheme.Scheme))
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, p := range []struct {
		start  func(context.Context, *rest.Config) error
		config *rest.Config
	}{{startSnapshotController, theirs}, {runDriver, others}} {
		running.Go(func() {
			if err := p.start(ctx, p.config); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { stop(); running.Wait() })
}

// The first finding of snapshot-controller in real time: a snapshot whose content is created twice is never ready. The next
// one is.
func TestStuckSnapshot(t *testing.T) {
	c, config := cluster(t)
	slow := &loss{over: make(chan struct{})}
	theirs := rest.CopyConfig(config)
	theirs.Wrap(func(next http.RoundTripper) http.RoundTripper { slow.next = next; return slow })
	run(t, theirs, config)
	t.Cleanup(slow.finish)
	create(t, c, aSnapshot("a"))
	until(t, func() bool { return slow.creates.Load() > 1 })
	create(t, c, aSnapshot("b"))
	until(t, func() bool { return isReady(t, c, "b") })
	if isReady(t, c, "a") {
		t.Error("a is ready: the finding is gone")
	}
}

// After a start of snapshot-controller, a VolumeGroupSnapshot with the name of a later VolumeSnapshot is not reconciled. One
// with a name of its own is.
func TestStuckGroup(t *testing.T) {
	c, config := cluster(t)
	create(t, c, aGroup("a"), aGroup("z"), aSnapshot("a"))
	run(t, config, config)
	until(t, func() bool { return isReady(t, c, "a") && isBound(t, c, "z") })
	create(t, c, aGroup("y"))
	until(t, func() bool { return isBound(t, c, "y") })
	if isBound(t, c, "a") {
		t.Error("the group a is bound: the finding is gone")
	}
}

// A deletion while the controller writes the status of a bound snapshot leaves the content of the user without the annotation
// that lets csi-snapshotter delete it. Without the delay, the content is gone.
func TestStuckContent(t *testing.T) {
	c, config := cluster(t)
	slow := &held{path: "/volumesnapshots/a/status", arrived: make(chan struct{}), over: make(chan struct{})}
	theirs := rest.CopyConfig(config)
	theirs.Wrap(func(next http.RoundTripper) http.RoundTripper { slow.next = next; return slow })
	run(t, theirs, config)
	release := sync.OnceFunc(func() { close(slow.over) })
	t.Cleanup(release)
	for _, name := range []string{"a", "b"} {
		create(t, c, aContent(name))
		create(t, c, aBound(name))
		if name == "a" {
			select {
			case <-slow.arrived:
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

// held delays the requests of a path.
type held struct {
	next          http.RoundTripper
	path          string
	arrived, over chan struct{}
	once          sync.Once
}

func (h *held) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, h.path) {
		h.once.Do(func() { close(h.arrived) })
		<-h.over
	}
	return h.next.RoundTrip(r)
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
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return holds(), nil
	}); err != nil {
		t.Fatal(err)
	}
}

func isReady(t *testing.T, c client.Client, name string) bool {
	var s snapshots.VolumeSnapshot
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(aSnapshot(name)), &s); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	return s.Status != nil && s.Status.ReadyToUse != nil && *s.Status.ReadyToUse
}
