package egress

import (
	"cmp"
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	reference = flag.Bool("reference", false, "run kube-apiserver with etcd instead of anykind, in tests that support it")
	update    = flag.Bool("update", false, "write the results of -reference to testdata")
)

// domain is the suffix of the names that only agents resolve.
const domain = "only-the-agent.test"

// An api is a server with clients.
type api struct {
	*testing.T
	kubeconfig string
	pid        int
	client     kubernetes.Interface
	objects    dynamic.Interface
	http       *http.Client
	config     *rest.Config
}

// startAPI starts a server with additional flags: anykind, or kube-apiserver with -reference.
func startAPI(t *testing.T, flags ...string) *api {
	t.Helper()
	if !*reference {
		return startAnykind(t, flags...)
	}
	server, err := kubeAPIServer()
	must(t, err)
	store, err := etcd()
	must(t, err)
	r, err := process.StartReference(context.WithoutCancel(t.Context()), server, store, t.TempDir(), flags...)
	must(t, err)
	t.Cleanup(r.Kill)
	return newAPI(t, r.Kubeconfig, r.PID())
}

func startAnykind(t *testing.T, flags ...string) *api {
	t.Helper()
	path, err := anykind()
	must(t, err)
	s, err := process.Start(context.WithoutCancel(t.Context()), path, t.TempDir(), "", append([]string{"--in-memory"}, flags...)...)
	must(t, err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return newAPI(t, s.Kubeconfig, s.PID())
}

func newAPI(t *testing.T, kubeconfig string, pid int) *api {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	a := &api{T: t, kubeconfig: kubeconfig, pid: pid, config: config}
	a.http, err = rest.HTTPClientFor(config)
	must(t, err)
	a.client, err = kubernetes.NewForConfig(config)
	must(t, err)
	a.objects, err = dynamic.NewForConfig(config)
	must(t, err)
	return a
}

// raw gets a path.
func (a *api) raw(path string) (string, error) {
	body, err := a.client.CoreV1().RESTClient().Get().AbsPath(path).MaxRetries(0).DoRaw(a.Context())
	return string(body), err
}

// counted returns the counters, and those that have changed since an earlier call, with the
// difference.
func (a *api) counted(before map[string]string) (now map[string]string, moved []string) {
	a.Helper()
	all, err := a.raw("/metrics")
	must(a.T, err)
	now = map[string]string{}
	for line := range strings.Lines(all) {
		series, value, found := strings.Cut(strings.TrimSpace(line), "} ")
		if !found || !counts.MatchString(series) {
			continue
		}
		series += "}"
		if now[series] = value; before[series] != value {
			moved = append(moved, series)
		}
	}
	slices.Sort(moved)
	return now, moved
}

// counts matches the metrics of egress, except durations, and those with more detail than the success
// of a connection.
var counts = regexp.MustCompile(`^apiserver_egress_dialer_dial_(start_total|failure_count|duration_seconds_count)|^konnectivity_network_proxy_client_dial_failure_total`)

// eventually waits for an asynchronous effect.
func eventually(t *testing.T, what string, done func() error) {
	t.Helper()
	if err := within(t, waitTimeout, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// within retries until success, or until the time is up. It returns the last error.
func within(t *testing.T, long time.Duration, done func() error) (last error) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, long, true, func(context.Context) (bool, error) {
		last = done()
		return last == nil, nil
	})
	return cmp.Or(last, err)
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(file))
	must(t, err)
	return string(data)
}
