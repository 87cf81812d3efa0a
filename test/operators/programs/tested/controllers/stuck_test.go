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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
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

// The finding of snapshot-controller in real time: a snapshot whose content is created twice is never ready. The next
// one is.
func TestStuckSnapshot(t *testing.T) {
	w := snapshotWorld(t)
	config := realServer(t)
	c, err := client.New(config, client.Options{Scheme: w.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	slow := &loss{over: make(chan struct{})}
	theirs := rest.CopyConfig(config)
	theirs.Wrap(func(next http.RoundTripper) http.RoundTripper { slow.next = next; return slow })
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, p := range []struct {
		start  func(context.Context, *rest.Config) error
		config *rest.Config
	}{{w.Start, theirs}, {runDriver, config}} {
		running.Go(func() {
			if err := p.start(ctx, p.config); err != nil {
				t.Error(err)
			}
		})
	}
	defer func() { slow.finish(); stop(); running.Wait() }()

	volume, claim := aVolume()
	for _, o := range []client.Object{aClass(snapshots.VolumeSnapshotContentDelete), volume, claim} {
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Status().Patch(ctx, claim, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Bound"}}`))); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, aSnapshot("a")); err != nil {
		t.Fatal(err)
	}
	until(t, ctx, func() bool { return slow.creates.Load() > 1 })
	if err := c.Create(ctx, aSnapshot("b")); err != nil {
		t.Fatal(err)
	}
	until(t, ctx, func() bool { return isReady(t, c, "b") })
	if isReady(t, c, "a") {
		t.Error("a is ready: the finding is gone")
	}
}

func until(t *testing.T, ctx context.Context, holds func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
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
