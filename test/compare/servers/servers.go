// Package servers starts the two servers of a comparison: anykind, and a published kube-apiserver over
// its own etcd.
//
// Both accept the same token of an administrator in system:masters. The package knows how to start
// each, and how to detect that a kind is served. It does not know the requests of the tests.
package servers

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/test/compare/wire"
	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

// Token is the token of the administrator, on both servers.
const Token = "admin-token"

// Options configure the servers.
type Options struct {
	Reference string   // kubeconfig of a running server, or "start"
	Store     string   // of anykind: "memory", "file", "fork" (a fork of a server with a file) or "etcd"
	Gates     string   // feature gates of both servers
	Config    string   // --runtime-config of both servers
	Dir       string   // for the data of both
	Theirs    []string // additional flags
	Ours      []string
}

// managed are the controllers of anykind that Kubernetes has in kube-controller-manager, and not in
// kube-apiserver.
var managed = []string{
	"bootstrap-signer-controller", "clusterrole-aggregation-controller", "garbage-collector-controller",
	"legacy-serviceaccount-token-cleaner-controller", "namespace-controller", "resourcequota-controller",
	"root-ca-certificate-publisher-controller", "serviceaccount-controller", "serviceaccount-token-controller",
	"validatingadmissionpolicy-status-controller",
}

// WithoutControllers disables the controllers that a kube-apiserver lacks: a deleted namespace stays
// Terminating on both servers. Then pods need no ServiceAccounts on either. Requests without
// credentials are anonymous on both, as is kube-apiserver's default.
func (o *Options) WithoutControllers() {
	const accounts = "--disable-admission-plugins=ServiceAccount"
	o.Theirs = append(o.Theirs, accounts)
	o.Ours = append(o.Ours, accounts, "--anonymous-auth=true", "--service-account-issuer=https://localhost", "--controllers=*,-"+strings.Join(managed, ",-"))
}

// A Pair is both servers, running.
type Pair struct {
	Theirs, Ours *wire.Client
	TheirPID     int // 0 for an existing server
	OurPID       int
	Elsewhere    [2]*wire.Answer // responses of both to step 0 of every sequence

	end []func()
}

// Start starts both servers. The end of ctx kills them.
func Start(ctx context.Context, o Options) (*Pair, error) {
	p := &Pair{}
	if err := p.start(ctx, o); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

func (p *Pair) start(ctx context.Context, o Options) error {
	tokens := filepath.Join(o.Dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(Token+",admin,admin,system:masters\n"), 0o600); err != nil {
		return err
	}
	if err := p.startTheirs(ctx, o); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	if err := p.startOurs(ctx, o, tokens); err != nil {
		return fmt.Errorf("anykind: %w", err)
	}
	return nil
}

// common returns some flags, and those of both servers.
func (o Options) common(flags []string) []string {
	flags = slices.Clone(flags)
	if o.Gates != "" {
		flags = append(flags, "--feature-gates="+o.Gates)
	}
	if o.Config != "" {
		flags = append(flags, "--runtime-config="+o.Config)
	}
	return flags
}

func (p *Pair) startTheirs(ctx context.Context, o Options) error {
	kubeconfig := o.Reference
	if o.Reference == "start" || isProgram(o.Reference) {
		kubeAPIServer, err := o.Reference, error(nil)
		if o.Reference == "start" {
			kubeAPIServer, err = program.KubeAPIServer()
		}
		if err != nil {
			return err
		}
		etcd, err := program.Etcd()
		if err != nil {
			return err
		}
		dir := filepath.Join(o.Dir, "theirs")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		r, err := process.StartReference(ctx, kubeAPIServer, etcd, dir, o.common(o.Theirs)...)
		if err != nil {
			return err
		}
		p.end, p.TheirPID = append(p.end, r.Kill), r.PID()
		kubeconfig = r.Kubeconfig
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	p.Theirs, err = wire.NewClient(config.Host, &tls.Config{InsecureSkipVerify: true}, config.BearerToken)
	return err
}

func isProgram(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

func (p *Pair) startOurs(ctx context.Context, o Options, tokens string) error {
	anykind, err := program.Anykind()
	if err != nil {
		return err
	}
	dir := filepath.Join(o.Dir, "ours")
	flags := append([]string{"--token-auth-file", tokens}, o.common(o.Ours)...)
	switch o.Store {
	case "memory":
		flags = append(flags, "--in-memory")
	case "file", "fork":
	case "etcd":
		url, end, err := StartEtcd(ctx, filepath.Join(o.Dir, "etcd"))
		if err != nil {
			return err
		}
		p.end = append(p.end, end)
		flags = append(flags, "--etcd-servers", url)
	default:
		return fmt.Errorf("%q is no store: memory, file, fork or etcd", o.Store)
	}
	s, err := process.Start(ctx, anykind, dir, "", flags...)
	if err != nil {
		return err
	}
	p.end, p.OurPID = append(p.end, s.Kill), s.PID()
	url := s.URL
	if o.Store == "fork" {
		made, err := process.Client(s.Kubeconfig)
		if err != nil {
			return err
		}
		defer made.CloseIdleConnections()
		const name = "compared"
		if err := (process.API{Client: made, URL: s.URL}).Do(ctx, http.MethodPost, "/forks", map[string]any{"name": name, "webhooks": "DryRun"}, nil); err != nil {
			return err
		}
		url += "/forks/" + name
	}
	p.Ours, err = wire.NewClient(url, &tls.Config{InsecureSkipVerify: true}, Token)
	return err
}

// StartEtcd starts an etcd, waits until it listens, and returns its URL and a function that stops it.
func StartEtcd(ctx context.Context, dir string) (url string, end func(), err error) {
	etcd, err := program.Etcd()
	if err != nil {
		return "", nil, err
	}
	addresses := make([]string, 2)
	for i := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}
		addresses[i] = l.Addr().String()
		if err := l.Close(); err != nil {
			return "", nil, err
		}
	}
	store, peer := "http://"+addresses[0], "http://"+addresses[1]
	cmd := exec.CommandContext(ctx, etcd, "--data-dir", dir, "--log-level", "error",
		"--listen-client-urls", store, "--advertise-client-urls", store,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		cmd.Process.Kill() // fails only after the end of the process
		cmd.Wait()
	}
	for range 600 {
		if c, err := net.Dial("tcp", addresses[0]); err == nil {
			return store, end, c.Close()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			end()
			return "", nil, ctx.Err()
		}
	}
	end()
	return "", nil, fmt.Errorf("etcd did not listen at %s", store)
}

// Stop stops the servers that Start started.
func (p *Pair) Stop() {
	for _, c := range []*wire.Client{p.Theirs, p.Ours} {
		if c != nil {
			c.Close()
		}
	}
	for i := len(p.end) - 1; i >= 0; i-- {
		p.end[i]()
	}
}
