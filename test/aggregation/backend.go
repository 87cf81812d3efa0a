package aggregation

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// waitTimeout limits every wait.
const waitTimeout = time.Minute

// A backend is sample-apiserver with an etcd of its own, as processes. They replace the pod of the
// page's Deployment.
type backend struct {
	dir    string
	port   string // of the server; it never changes
	store  string // URL of its etcd
	cert   string // files
	key    string
	config string // kubeconfig of its ServiceAccount

	etcd, server *child
}

// A child is a process that this package started.
type child struct {
	cmd   *exec.Cmd
	log   bytes.Buffer // read after the end of the process
	ended chan struct{}
}

func spawn(ctx context.Context, path string, args ...string) (*child, error) {
	c := &child{ended: make(chan struct{})}
	c.cmd = exec.CommandContext(ctx, path, args...)
	c.cmd.Stdout, c.cmd.Stderr = &c.log, &c.log
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		c.cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

func (c *child) kill() {
	if c != nil {
		c.cmd.Process.Kill() // fails only after the end of the process
		<-c.ended
	}
}

// newBackend prepares a backend in a folder, with certificates for a Service, signed by a CA.
func newBackend(dir, service string) (*backend, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	ca, err := newAuthority(dir, "ca")
	if err != nil {
		return nil, err
	}
	cert, key, err := ca.issue("tls", service)
	if err != nil {
		return nil, err
	}
	at, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(at)
	return &backend{dir: dir, port: port, cert: cert, key: key, config: filepath.Join(dir, "kubeconfig")}, err
}

// start starts the processes that are not running.
func (b *backend) start(ctx context.Context) error {
	if b.etcd == nil {
		if err := b.startStore(ctx); err != nil {
			return err
		}
	}
	path, err := sampleAPIServer()
	if err != nil {
		return err
	}
	b.server, err = spawn(ctx, path, "--bind-address=0.0.0.0", "--secure-port="+b.port,
		"--etcd-servers="+b.store, "--tls-cert-file="+b.cert, "--tls-private-key-file="+b.key,
		"--kubeconfig="+b.config, "--authentication-kubeconfig="+b.config, "--authorization-kubeconfig="+b.config)
	if err != nil {
		return err
	}
	return b.ready(ctx)
}

func (b *backend) startStore(ctx context.Context) error {
	path, err := etcd()
	if err != nil {
		return err
	}
	clients, err := freeAddress()
	if err != nil {
		return err
	}
	peers, err := freeAddress()
	if err != nil {
		return err
	}
	b.store = "http://" + clients
	b.etcd, err = spawn(ctx, path, "--data-dir", filepath.Join(b.dir, "etcd"), "--log-level", "error",
		"--listen-client-urls", b.store, "--advertise-client-urls", b.store,
		"--listen-peer-urls", "http://"+peers, "--initial-advertise-peer-urls", "http://"+peers, "--initial-cluster", "default=http://"+peers)
	return err
}

// ready waits until the server is ready.
func (b *backend) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	for {
		answer, err := client.Get("https://127.0.0.1:" + b.port + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-b.server.ended:
			return fmt.Errorf("sample-apiserver ended with %v and logged\n%s", b.server.cmd.ProcessState, b.server.log.String())
		case <-ctx.Done():
			b.server.kill()
			return fmt.Errorf("sample-apiserver is not ready: %w; it logged\n%s", ctx.Err(), b.server.log.String())
		}
	}
}

// kill kills the server. Its data stay in etcd.
func (b *backend) kill(logs string) error {
	if b.server == nil {
		return nil
	}
	b.server.kill()
	err := keep(logs, "sample-apiserver", &b.server.log)
	b.server = nil
	return err
}

// end stops the server and its etcd.
func (b *backend) end(logs string) error {
	err := b.kill(logs)
	b.etcd.kill()
	return err
}

// ownAddress returns an address of this machine that is valid in an EndpointSlice, "" if there is
// none.
func ownAddress() string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}

// freeAddress returns a free address of this machine.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
