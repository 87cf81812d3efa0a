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

// patience is how long anything may take.
const patience = time.Minute

// A backend is sample-apiserver with an etcd of its own, as processes: what runs in the pod of the
// page's Deployment.
type backend struct {
	dir    string
	port   string // of the server, the same for its whole life
	store  string // URL of its etcd
	cert   string // files
	key    string
	config string // kubeconfig file of its ServiceAccount

	etcd, server *child
}

// A child is a process that was started here.
type child struct {
	cmd   *exec.Cmd
	log   bytes.Buffer // to be read when it has ended
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
		c.cmd.Process.Kill() // fails only if it has ended
		<-c.ended
	}
}

// newBackend finds a place for a backend in a folder, with certificates of a Service by an authority.
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

// start starts what is not running of it.
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

// ready returns when the server says that it is ready.
func (b *backend) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
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

// kill ends the server as it stands. What it stored is still there.
func (b *backend) kill(logs string) error {
	if b.server == nil {
		return nil
	}
	b.server.kill()
	err := keep(logs, "sample-apiserver", &b.server.log)
	b.server = nil
	return err
}

// end ends all of it.
func (b *backend) end(logs string) error {
	err := b.kill(logs)
	b.etcd.kill()
	return err
}

// ownAddress returns an address of this machine that an EndpointSlice may have, "" if there is none.
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

// freeAddress returns an address of this machine at which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
