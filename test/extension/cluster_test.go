package extension

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/anykind/anykind/test/program"
)

// waitTimeout limits the wait for an asynchronous effect of a program.
const waitTimeout = 5 * time.Minute

// A cluster is a kube-apiserver with an etcd. It is a front proxy, which connects to the endpoints of
// Services itself.
type cluster struct {
	t              *testing.T // the cluster stops at its end
	dir            string
	url            string
	clients, front *pair // CAs of users, and of the front proxy
	admin          *rest.Config
	client         kubernetes.Interface
	objects        dynamic.Interface

	command []string // the command of kube-apiserver
	server  *exec.Cmd
}

// startCluster starts a cluster with a program that has the flags of kube-apiserver. It stops at the
// end of the test.
func startCluster(t *testing.T, kubeAPIServer string) *cluster {
	t.Helper()
	etcd, err := program.Etcd()
	must(t, err)
	c := &cluster{t: t, dir: t.TempDir()}
	c.clients, c.front = certify(t, c.dir, nil, "clients"), certify(t, c.dir, nil, "front")
	proxy := certify(t, c.dir, c.front, "front-proxy-client")
	accounts := certify(t, c.dir, nil, "accounts")
	ports := freePorts(t, 3)
	store, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	c.url = "https://127.0.0.1:" + ports[2]
	_, err = run(t, etcd, "--data-dir", filepath.Join(c.dir, "etcd"), "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", store, "--advertise-client-urls", store,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	must(t, err)
	c.command = []string{kubeAPIServer, "--etcd-servers", store, "--bind-address", "0.0.0.0", "--secure-port", ports[2],
		"--cert-dir", filepath.Join(c.dir, "serving"), "--authorization-mode", "RBAC",
		"--client-ca-file", c.clients.certFile, "--enable-aggregator-routing",
		"--requestheader-client-ca-file", c.front.certFile, "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-uid-headers=X-Remote-Uid",
		"--proxy-client-cert-file", proxy.certFile, "--proxy-client-key-file", proxy.keyFile,
		"--service-account-issuer", "https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file", accounts.keyFile, "--service-account-signing-key-file", accounts.keyFile,
		"--service-cluster-ip-range", "10.0.0.0/24"}
	c.admin = c.as(certify(t, c.dir, c.clients, "root", "system:masters"))
	c.client, err = kubernetes.NewForConfig(c.admin)
	must(t, err)
	c.objects, err = dynamic.NewForConfig(c.admin)
	must(t, err)
	must(t, c.start())
	return c
}

// start starts kube-apiserver, and waits until it is ready.
func (c *cluster) start() error {
	var err error
	if c.server, err = run(c.t, c.command[0], c.command[1:]...); err != nil {
		return err
	}
	return become(c.t.Context(), "kube-apiserver is ready", func(ctx context.Context) error {
		return c.client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// restart kills kube-apiserver, which would wait for watches for a minute, and starts it again.
func (c *cluster) restart() error {
	if err := c.server.Process.Kill(); err != nil {
		return err
	}
	c.server.Wait() // reports the kill
	return c.start()
}

// as returns a config with a client certificate.
func (c *cluster) as(p *pair) *rest.Config {
	return &rest.Config{Host: c.url, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true, CertFile: p.certFile, KeyFile: p.keyFile}}
}

// with returns a config with a token.
func with(url, token string) *rest.Config {
	return &rest.Config{Host: url, QPS: -1, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// token returns a token of a ServiceAccount.
func (c *cluster) token(t *testing.T, namespace, name string) string {
	t.Helper()
	seconds := int64(24 * 3600)
	r, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name,
		newTokenRequest(seconds), metav1.CreateOptions{})
	must(t, err)
	return r.Status.Token
}

// kubeconfig writes a kubeconfig with a token.
func (c *cluster) kubeconfig(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"c": {Server: c.url, InsecureSkipTLSVerify: true}},
		AuthInfos:      map[string]*api.AuthInfo{"u": {Token: token}},
		Contexts:       map[string]*api.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	}, file))
	return file
}

// apply applies objects as kubectl apply --server-side does.
func apply(t *testing.T, client dynamic.Interface, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		must(t, applyOne(t.Context(), client, o))
	}
}

func applyOne(ctx context.Context, client dynamic.Interface, o *unstructured.Unstructured) error {
	gv, err := schema.ParseGroupVersion(o.GetAPIVersion())
	if err != nil {
		return err
	}
	resource := plurals[o.GetKind()]
	if resource == "" {
		return fmt.Errorf("no plural of %s is known", o.GetKind())
	}
	var into dynamic.ResourceInterface = client.Resource(gv.WithResource(resource))
	if namespace := o.GetNamespace(); namespace != "" {
		into = client.Resource(gv.WithResource(resource)).Namespace(namespace)
	}
	_, err = into.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true})
	return err
}

// plurals are the plurals of the kinds that tests apply.
var plurals = map[string]string{
	"Namespace": "namespaces", "ServiceAccount": "serviceaccounts", "Service": "services", "ConfigMap": "configmaps",
	"StatefulSet": "statefulsets", "Role": "roles", "RoleBinding": "rolebindings", "ClusterRole": "clusterroles",
	"ClusterRoleBinding": "clusterrolebindings", "APIService": "apiservices", "CustomResourceDefinition": "customresourcedefinitions",
}

// serve creates the endpoints of a Service with a port of this machine, in place of its pods.
func (c *cluster) serve(t *testing.T, namespace, service string, port int) {
	t.Helper()
	ip, err := utilnet.ChooseHostInterface() // endpoints may not be on the loopback interface
	must(t, err)
	name, number, tcp, ready := "https", int32(port), corev1.ProtocolTCP, true
	_, err = c.client.DiscoveryV1().EndpointSlices(namespace).Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &number, Protocol: &tcp}},
	}, metav1.CreateOptions{})
	must(t, err)
}

// run starts a program, which is killed at the end of the test.
func run(t *testing.T, path string, args ...string) (*exec.Cmd, error) {
	var log bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	t.Cleanup(func() {
		if cmd.Process == nil {
			return
		}
		cmd.Process.Kill() // fails only after the end of the process
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s wrote\n%s", filepath.Base(path), tail(log.String()))
		}
	})
	return cmd, cmd.Start()
}

func tail(log string) string { return log[max(0, len(log)-8000):] }

// become polls until a condition holds, or returns an error.
func become(ctx context.Context, what string, is func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	for {
		err := is(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("not so: %s: %w", what, err)
		}
	}
}

// eventually fails a test if a condition does not come to hold.
func eventually(t testing.TB, what string, is func(context.Context) error) {
	t.Helper()
	must(t, become(t.Context(), what, is))
}

// freePorts returns free ports of this machine.
func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer l.Close()
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return ports
}

// status gets a path of a server, and returns the status code and the body.
func status(t testing.TB, config *rest.Config, path string) (int, string) {
	t.Helper()
	transport, err := rest.HTTPClientFor(config)
	must(t, err)
	defer transport.CloseIdleConnections()
	response, err := transport.Get(config.Host + path)
	must(t, err)
	defer response.Body.Close()
	var body bytes.Buffer
	_, err = body.ReadFrom(response.Body)
	must(t, err)
	return response.StatusCode, body.String()
}
