package controllers

import (
	"context"
	"flag"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/controller/deployment/util"

	"github.com/anykind/anykind/envtest"
	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

var reference = flag.Bool("reference", false, "repeat findings with the published kube-apiserver")

// A lag delays watches of a resource from the first creation of an object by the same client on.
type lag struct {
	resource string
	next     http.RoundTripper
	begins   sync.Once
	begun    chan struct{}
	over     chan struct{} // closed when events may pass again
}

func (l *lag) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/"+l.resource) {
		return l.next.RoundTrip(r)
	}
	if r.Method == http.MethodPost {
		l.begins.Do(func() { close(l.begun) })
	}
	response, err := l.next.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "" {
		response.Body = &delayed{response.Body, l}
	}
	return response, err
}

// delayed is the body of a watch that a lag delays.
type delayed struct {
	io.ReadCloser
	lag *lag
}

func (d *delayed) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	select {
	case <-d.lag.begun:
		<-d.lag.over
	default:
	}
	return n, err
}

// realServer starts a server with sockets and in real time: kube-apiserver, or envtest's.
func realServer(t *testing.T) *rest.Config {
	if !*reference {
		return (&envtest.Environment{}).StartFor(t)
	}
	kubeAPIServer, err := program.KubeAPIServer()
	must(t, err)
	etcd, err := program.Etcd()
	must(t, err)
	r, err := process.StartReference(t.Context(), kubeAPIServer, etcd, t.TempDir(), "--disable-admission-plugins=ServiceAccount")
	must(t, err)
	t.Cleanup(r.Kill)
	config, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig)
	must(t, err)
	return config
}

// Revisions that are numbered from a cache, in real time: the watch of the objects that keep them lags, and two
// revisions get one number.
func TestEqualRevisions(t *testing.T) {
	config := realServer(t)
	c, err := kubernetes.NewForConfig(config)
	must(t, err)
	controllerRevisions := func(ctx context.Context, owner string) (numbers []int64, err error) {
		all, err := c.AppsV1().ControllerRevisions("default").List(ctx, metav1.ListOptions{})
		for _, r := range all.Items {
			if metav1.GetControllerOf(&r).Name == owner {
				numbers = append(numbers, r.Revision)
			}
		}
		return numbers, err
	}
	replicaSets := func(ctx context.Context, owner string) (numbers []int64, err error) {
		all, err := c.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
		for _, r := range all.Items {
			if metav1.GetControllerOf(&r).Name == owner {
				number, err := strconv.ParseInt(r.Annotations[util.RevisionAnnotation], 10, 64)
				must(t, err)
				numbers = append(numbers, number)
			}
		}
		return numbers, err
	}
	for _, w := range []workload{
		{"statefulsets", aStatefulSet(1, "example.com/web:1"), statefulSets, "controllerrevisions", controllerRevisions},
		{"daemonsets", aDaemonSet("example.com/web:1"), daemonSets, "controllerrevisions", controllerRevisions},
		{"deployments", aDeployment(1, "example.com/web:1"), deployments, "replicasets", replicaSets},
	} {
		t.Run(w.resource, func(t *testing.T) { equalRevisions(t, config, w) })
	}
}

// A workload is an object whose controller keeps revisions in objects of another resource.
type workload struct {
	resource string
	object   interface {
		runtime.Object
		metav1.Object
	}
	controller maker
	kept       string // the resource of the revisions
	numbers    func(ctx context.Context, owner string) ([]int64, error)
}

func equalRevisions(t *testing.T, config *rest.Config, w workload) {
	c, err := kubernetes.NewForConfig(config)
	must(t, err)
	slow := &lag{resource: w.kept, begun: make(chan struct{}), over: make(chan struct{})}
	theirs := rest.CopyConfig(config)
	theirs.Wrap(func(next http.RoundTripper) http.RoundTripper { slow.next = next; return slow })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- start(w.controller)(ctx, theirs) }()
	defer func() { close(slow.over); stop(); must(t, <-ended) }()

	_, err = c.AppsV1().RESTClient().Post().Namespace("default").Resource(w.resource).Body(w.object).Do(ctx).Get()
	must(t, err)
	numbers := func(n int) (numbers []int64) {
		must(t, wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (_ bool, err error) {
			numbers, err = w.numbers(ctx, w.object.GetName())
			return len(numbers) == n, err
		}))
		return numbers
	}
	numbers(1)
	_, err = c.AppsV1().RESTClient().Patch(types.StrategicMergePatchType).Namespace("default").Resource(w.resource).Name(w.object.GetName()).
		Body([]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"example.com/web:2"}]}}}}`)).Do(ctx).Get()
	must(t, err)
	if got := numbers(2); got[0] != 1 || got[1] != 1 {
		t.Errorf("the revisions are %d: the finding is gone", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
