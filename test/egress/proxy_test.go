package egress

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/armon/go-socks5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A proxy resolves every name and every address to this machine.
type proxy struct {
	address string

	mu    sync.Mutex
	asked []string // requested addresses, in order
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// startSOCKS starts a published SOCKS5 proxy.
func startSOCKS(t *testing.T) *proxy {
	t.Helper()
	l := listen(t)
	p := &proxy{address: "socks5://" + l.Addr().String()}
	s, err := socks5.New(&socks5.Config{Resolver: p, Rewriter: p, Rules: p, Logger: log.New(io.Discard, "", 0)})
	must(t, err)
	go s.Serve(l)
	return p
}

// Resolve implements socks5.NameResolver.
func (p *proxy) Resolve(ctx context.Context, _ string) (context.Context, net.IP, error) {
	return ctx, net.IPv4(127, 0, 0, 1), nil
}

// Rewrite implements socks5.AddressRewriter.
func (p *proxy) Rewrite(ctx context.Context, r *socks5.Request) (context.Context, *socks5.AddrSpec) {
	return ctx, &socks5.AddrSpec{IP: net.IPv4(127, 0, 0, 1), Port: r.DestAddr.Port}
}

// Allow implements socks5.RuleSet.
func (p *proxy) Allow(ctx context.Context, r *socks5.Request) (context.Context, bool) {
	p.note(fmt.Sprintf("%s:%d", cmp.Or(r.DestAddr.FQDN, r.DestAddr.IP.String()), r.DestAddr.Port))
	return ctx, true
}

// startCONNECT starts an HTTP proxy with CONNECT.
func startCONNECT(t *testing.T) *proxy {
	t.Helper()
	l := listen(t)
	p := &proxy{address: "http://" + l.Addr().String()}
	go http.Serve(l, p)
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.note(r.Host)
	_, port, _ := net.SplitHostPort(r.Host)
	there, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil || r.Method != http.MethodConnect {
		http.Error(w, fmt.Sprint(r.Method, err), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, said, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { io.Copy(there, said); there.Close() }()
	io.Copy(here, there)
}

func (p *proxy) note(destination string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, destination)
}

// take returns the requested addresses since the last call.
func (p *proxy) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.asked
	p.asked = nil
	return asked
}

// Direct connections use the proxy of the environment where kube-apiserver does so: all HTTPS except
// for this machine, for the hosts of NO_PROXY, and for upgraded connections. ALL_PROXY has no effect.
func TestEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name     string
		start    func(*testing.T) *proxy
		variable string
	}{
		{"socks5", startSOCKS, "HTTPS_PROXY"},
		{"http", startCONNECT, "HTTPS_PROXY"},
		{"all", startSOCKS, "ALL_PROXY"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, ca := tt.start(t), newAuthority(t)
			for _, v := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"} {
				t.Setenv(v, "")
			}
			t.Setenv(tt.variable, p.address)
			t.Setenv("NO_PROXY", "direct.example.test")
			const host = "hook.example.test"
			h := startHook(t, ca, host, "hook.default.svc", "direct.default.svc", "direct.example.test")
			users := ca.put(t, "users.kubeconfig", fmt.Appendf(nil, "apiVersion: v1\nkind: Config\nclusters: [{name: hook, cluster: {server: 'https://%s:%s/', certificate-authority: %q}}]\nusers: [{name: server, user: {}}]\ncontexts: [{name: hook, context: {cluster: hook, user: server}}]\ncurrent-context: hook\n", host, h.port, ca.file))
			a := startAPI(t, "--disable-admission-plugins=ServiceAccount", "--authentication-token-webhook-config-file="+users)
			a.populate(h, ca.CertPEM(), h.port, "example.test")
			a.apply(webhook("localhost", fmt.Sprintf("url: 'https://127.0.0.1:%s/'", h.port), ca.CertPEM()))
			a.apply(behind("direct", "direct.example.test", h.port, ca.CertPEM()))
			a.apply(webhook("named", fmt.Sprintf("url: 'https://%s:%s/'", host, h.port), ca.CertPEM()))
			eventually(t, "the webhooks are known", func() error { // in a kube-apiserver they take effect a moment later
				if a.ask("localhost") != nil || h.asked.Load() == 0 {
					return fmt.Errorf("the webhook was asked %d times", h.asked.Load())
				}
				if tt.variable == "HTTPS_PROXY" {
					return a.ask("named")
				}
				return nil
			})
			p.take()
			s := &story{api: a}
			tell := func(step string, err error) {
				said := "an error"
				if err == nil {
					said = "ok"
				}
				asked := p.take()
				slices.Sort(asked)
				fmt.Fprintf(&s.text, "# %s\n%s %s\n", step, said, strings.ReplaceAll(strings.Join(slices.Compact(asked), " "), ":"+h.port, ":PORT"))
			}
			tell("a webhook at a URL", a.ask("named"))
			tell("a webhook on this machine", a.ask("localhost"))
			tell("a webhook behind a Service", a.ask("hook"))
			tell("a webhook behind a Service that NO_PROXY names", a.ask("direct"))
			tell("a conversion", a.convert("second"))
			tell("a kubelet", a.logs())
			if tt.variable == "HTTPS_PROXY" { // otherwise the server would connect to the real address
				tell("a pod", a.page("/api/v1/namespaces/default/pods/https:logged:"+h.port+"/proxy/", "a line of a log\n"))
			}
			tell("whose a token is", a.user("one"))
			if tt.variable == "HTTPS_PROXY" {
				// Its availability checks run periodically, so it comes last.
				a.apply(elsewhere(h.port, ca.CertPEM()))
				eventually(t, "the API server is available", a.aggregated)
				tell("another API server", a.aggregated())
			}

			s.compare(t, "environment-"+tt.name)
		})
	}
}

// The page "Use a SOCKS5 Proxy to Access the Kubernetes API": kubectl reaches a server through a proxy
// from its environment and from proxy-url, also if only the proxy resolves the name of the server.
func TestSOCKS(t *testing.T) {
	t.Parallel()
	p := startSOCKS(t)
	a := startAnykind(t)
	ctl, err := kubectl()
	must(t, err)
	at, err := url.Parse(a.config.Host)
	must(t, err)
	remote := "api.example.test:" + at.Port()
	// file writes a kubeconfig for the name that only the proxy resolves.
	file := func(change func(*clientcmdapi.Cluster)) string {
		c, err := clientcmd.LoadFromFile(a.kubeconfig)
		must(t, err)
		for _, cluster := range c.Clusters {
			cluster.Server, cluster.TLSServerName = "https://"+remote, "localhost"
			change(cluster)
		}
		name := filepath.Join(t.TempDir(), "config")
		must(t, clientcmd.WriteToFile(*c, name))
		return name
	}
	run := func(kubeconfig, environment string, args ...string) (string, error) {
		c := exec.Command(ctl, args...)
		c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir(), environment)
		said, err := c.CombinedOutput()
		return string(said), err
	}
	byName := file(func(*clientcmdapi.Cluster) {})
	byURL := file(func(c *clientcmdapi.Cluster) { c.ProxyURL = p.address })

	if said, err := run(byName, "X=x", "get", "namespaces", "--request-timeout=5s"); err == nil {
		t.Errorf("the server is reached without the proxy: %s", said)
	}
	for _, tt := range []struct{ name, kubeconfig, environment string }{
		{"HTTPS_PROXY", byName, "HTTPS_PROXY=" + p.address},
		{"https_proxy", byName, "https_proxy=" + p.address},
		{"proxy-url", byURL, "X=x"},
		{"HTTPS_PROXY of socks5h", byName, "HTTPS_PROXY=" + strings.Replace(p.address, "socks5:", "socks5h:", 1)},
		{"proxy-url of a server on this machine", file(func(c *clientcmdapi.Cluster) { c.Server, c.ProxyURL = a.config.Host, p.address }), "X=x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.take()
			for _, args := range [][]string{
				{"create", "configmap", "c"}, {"wait", "configmap/c", "--for=jsonpath={.metadata.name}=c", "--timeout=20s"},
				{"get", "configmaps", "-o", "name"}, {"delete", "configmap", "c", "--wait"},
			} {
				if said, err := run(tt.kubeconfig, tt.environment, args...); err != nil {
					t.Fatalf("kubectl %v: %v\n%s", args, err, said)
				}
			}
			if asked := p.take(); len(asked) < 4 || !strings.HasSuffix(asked[0], ":"+at.Port()) {
				t.Errorf("the proxy was asked for %v", asked)
			}
		})
	}
	t.Run("watches", func(t *testing.T) { watchThrough(t, a, p) })
}

// watchThrough runs several watches and requests on one HTTP/2 connection through a proxy, each of
// which gets every event.
func watchThrough(t *testing.T, a *api, p *proxy) {
	t.Helper()
	through, err := url.Parse(p.address)
	must(t, err)
	config := rest.CopyConfig(a.config)
	config.Proxy = http.ProxyURL(through)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	p.take()
	maps := client.CoreV1().ConfigMaps("default")
	const watches, events = 10, 20
	var group sync.WaitGroup
	for range watches {
		w, err := maps.Watch(t.Context(), metav1.ListOptions{LabelSelector: "watched"})
		must(t, err)
		group.Go(func() {
			defer w.Stop()
			for range events {
				if e, more := <-w.ResultChan(); !more || e.Type != "ADDED" {
					t.Errorf("%v, %v", e, more)
					return
				}
			}
		})
	}
	for range events {
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "watched-", Labels: map[string]string{"watched": "yes"}}}, metav1.CreateOptions{})
		must(t, err)
	}
	group.Wait()
	if asked := p.take(); len(asked) != 1 {
		t.Errorf("the proxy was asked for %v: one connection of HTTP/2 does", asked)
	}
}
