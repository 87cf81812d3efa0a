// Package starter replaces the package by which Kubernetes' own tests start a kube-apiserver: it
// starts anykind, as a process of its own, over the etcd of the tests.
//
// It has the names that the tests call. It knows the flags that anykind does not need.
package starter

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/test/process"
)

// Program is the environment variable with the path of the program.
const Program = "ANYKIND_PROGRAM"

// TearDownFunc stops a server.
type TearDownFunc func()

// A TestServer is a running server.
type TestServer struct {
	ClientConfig      *rest.Config
	TearDownFn        TearDownFunc
	EtcdClient        *clientv3.Client
	EtcdStoragePrefix string
}

// TestServerInstanceOptions are those of kube-apiserver's starter. They have no effect on anykind.
type TestServerInstanceOptions struct {
	EnableCertAuth         bool
	DisableInvariantChecks bool
}

// NewDefaultTestServerOptions returns options, which some tests modify.
func NewDefaultTestServerOptions() *TestServerInstanceOptions { return &TestServerInstanceOptions{} }

// StartTestServerOrDie starts a server, or ends the test.
func StartTestServerOrDie(t testing.TB, o *TestServerInstanceOptions, flags []string, store *storagebackend.Config) *TestServer {
	t.Helper()
	s, err := StartTestServer(t, o, flags, store)
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// StartTestServer starts a server with the flags of a test.
func StartTestServer(t testing.TB, _ *TestServerInstanceOptions, flags []string, store *storagebackend.Config) (TestServer, error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "anykind")
	if err != nil {
		return TestServer{}, err
	}
	url := store.Transport.ServerList[0]
	flags = append(ours(flags), "--etcd-servers="+url, "--etcd-prefix=/"+strings.Trim(store.Prefix, "/"))
	if utilfeature.DefaultFeatureGate.Enabled(features.CBORServingAndStorage) {
		flags = append(flags, "--feature-gates=CBORServingAndStorage=true")
	}
	server, err := process.Start(context.Background(), os.Getenv(Program), dir, "", flags...)
	if err != nil {
		return TestServer{}, err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}})
	if err != nil {
		server.Kill()
		return TestServer{}, err
	}
	s := TestServer{EtcdClient: client, EtcdStoragePrefix: "/" + strings.Trim(store.Prefix, "/")}
	s.TearDownFn = func() {
		client.Close()
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.RemoveAll(dir)
	}
	if s.ClientConfig, err = clientcmd.BuildConfigFromFlags("", server.Kubeconfig); err != nil {
		s.TearDownFn()
		return TestServer{}, err
	}
	s.ClientConfig.QPS, s.ClientConfig.Burst = 1000, 10000
	s.ClientConfig.ContentType = "application/vnd.kubernetes.protobuf" // as for the server's own client
	return s, nil
}

// meaningless are flags for the internals of kube-apiserver, or for its audit log, which anykind does
// not have yet.
var meaningless = []string{"--watch-cache", "--enable-aggregator-routing", "--audit-policy-file", "--audit-log-version",
	"--audit-log-mode", "--audit-log-path", "--anonymous-auth"}

// ours returns the flags of anykind.
func ours(flags []string) (out []string) {
	for i := 0; i < len(flags); i++ {
		name, value, has := strings.Cut(flags[i], "=")
		if !has && i+1 < len(flags) && !strings.HasPrefix(flags[i+1], "--") {
			i++
			value = flags[i]
		}
		if drop(name) {
			continue
		}
		if value != "" {
			name += "=" + value
		}
		out = append(out, name)
	}
	// These tests count the writes of their clients only.
	return append(out, "--controllers=*,-garbage-collector-controller,-namespace-controller,-serviceaccount-controller,-root-ca-certificate-publisher-controller,-resourcequota-controller,-clusterrole-aggregation-controller")
}

func drop(name string) bool {
	for _, m := range meaningless {
		if name == m {
			return true
		}
	}
	return false
}
