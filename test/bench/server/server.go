// Package server starts the servers of a comparison, each in its recommended setup, and measures their
// processes from outside: time to ready, memory, CPU time.
//
// Several processes over one etcd can serve together. Each can be limited to a share of the CPU, which
// simulates a slower machine.
//
// Both servers get the same serving certificate and the same token, store data in a folder on the same
// disk, and sync to the disk before they acknowledge a write: anykind by fsync of its file, etcd by
// fdatasync of its log. kube-apiserver speaks plain HTTP/2 with etcd on the loopback interface, which
// is the cheapest way.
package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/anykind/anykind/test/bench/load"
)

// A command is a process of a server.
type command struct {
	name    string
	program string
	args    []string
	listens string // host:port
}

// A Server is a running server.
type Server struct {
	Target  load.Target   // the first of Targets
	Targets []load.Target // one for each process
	Ready   time.Duration // time from the start of the first process until all are ready

	roots     string // the file of its certificate
	processes []*process
	ended     chan error
	held      []*held
	beside    func() error // ends what runs besides; nil for nothing
}

// A process is one process of a server.
type process struct {
	name string
	*exec.Cmd
}

// Options are the options of a start.
type Options struct {
	// Wrap is a program, with arguments, that runs the last process, such as valgrind.
	Wrap []string
	// Env is added to the environment.
	Env []string
	// StartTimeout limits the time until the server is ready.
	StartTimeout time.Duration
	// Servers is the number of API servers over one etcd; 0 means one.
	Servers int
	// Share is the share of one core for each API server; 0 means no limit.
	Share float64
}

// Start creates a folder, starts a server with its data there, and returns once the server is ready.
func Start(ctx context.Context, k Kind, dir string, o Options) (*Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	c, err := readCredentials(dir)
	if err != nil {
		return nil, err
	}
	s := &Server{roots: c.cert, ended: make(chan error, 8)}
	if k.beside != nil {
		if s.beside, err = k.beside(dir); err != nil {
			return nil, err
		}
	}
	var addresses []string
	for range max(1, o.Servers) {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, address)
		s.Targets = append(s.Targets, load.Target{Address: address, TLS: &tls.Config{RootCAs: c.roots}, Token: tokenOf(Administrator)})
	}
	s.Target = s.Targets[0]
	ctx, cancel := context.WithTimeout(ctx, max(o.StartTimeout, 2*time.Minute))
	defer cancel()
	began := time.Now()
	list := k.commands(dir, addresses, c)
	for i, command := range list {
		if i == len(list)-1 && len(o.Wrap) > 0 {
			command.args = append(append(o.Wrap[1:len(o.Wrap):len(o.Wrap)], command.program), command.args...)
			command.program = o.Wrap[0]
		}
		if err := s.start(dir, command, o.Env); err != nil {
			s.Stop()
			return nil, err
		}
		if err := s.await(ctx, func() error { return accepts(ctx, command.listens) }); err != nil {
			s.Stop()
			return nil, fmt.Errorf("%s: %w", command.name, err)
		}
	}
	for _, t := range s.Targets {
		if err := s.await(ctx, func() error { return ready(ctx, t) }); err != nil {
			s.Stop()
			return nil, fmt.Errorf("%s is not ready: %w", k.Name, err)
		}
	}
	s.Ready = time.Since(began)
	if o.Share > 0 {
		for _, p := range s.processes[len(s.processes)-len(s.Targets):] {
			s.held = append(s.held, hold(p.Process, o.Share))
		}
	}
	return s, nil
}

func (s *Server) start(dir string, c command, env []string) error {
	name := filepath.Join(dir, c.name+".log")
	log, err := os.Create(name)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(c.program, c.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		return err
	}
	s.processes = append(s.processes, &process{c.name, cmd})
	go func() {
		err := cmd.Wait()
		s.ended <- fmt.Errorf("%s ended: %v; it wrote %s", c.name, err, last(name))
	}()
	return nil
}

// last returns the end of a file.
func last(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-600):])
}

// await retries until there is no error.
func (s *Server) await(ctx context.Context, ask func() error) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case gone := <-s.ended:
			s.ended <- gone
			return gone
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

func accepts(ctx context.Context, address string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err == nil {
		c.Close()
	}
	return err
}

func ready(ctx context.Context, t load.Target) error {
	c, err := load.Dial(ctx, t)
	if err != nil {
		return err
	}
	defer c.Close()
	got, err := c.Do(&load.Request{Method: "GET", Path: "/readyz"})
	if err == nil && got.Status != 200 {
		err = fmt.Errorf("%d %s", got.Status, got.Start)
	}
	return err
}

// As returns the first target for requests of a user.
func (s *Server) As(user string) load.Target {
	t := s.Target
	t.Token = tokenOf(user)
	return t
}

// Roots returns the file with the certificate of the server.
func (s *Server) Roots() string { return s.roots }

// PID is the ID of the process that serves the API.
func (s *Server) PID() int { return s.processes[len(s.processes)-1].Process.Pid }

// Stop stops the processes in reverse order.
func (s *Server) Stop() error {
	var failed error
	for _, h := range s.held {
		failed = errors.Join(failed, h.release())
	}
	s.held = nil
	for i := len(s.processes) - 1; i >= 0; i-- {
		p := s.processes[i].Process
		if err := p.Signal(syscall.SIGTERM); err != nil {
			continue // the process has ended
		}
		select {
		case <-s.ended:
		case <-time.After(time.Minute):
			failed = errors.Join(failed, fmt.Errorf("%s did not end in a minute", s.processes[i].name), p.Kill())
			<-s.ended
		}
	}
	s.processes = nil
	if s.beside != nil {
		failed = errors.Join(failed, s.beside())
		s.beside = nil
	}
	return failed
}

// The users that both servers know. Each but the administrator has only the rights that RBAC gives.
const (
	Administrator = "bench"
	User          = "bench-user"
	Other         = "bench-other"
	NodeName      = "bench"
	Node          = "system:node:" + NodeName
)

// tokenOf returns the token of a user.
func tokenOf(user string) string { return strings.ReplaceAll(user, ":", "-") + "-token" }

// users returns the file of the tokens.
func users() []byte {
	var file strings.Builder
	for _, u := range [][2]string{{Administrator, "system:masters"}, {User}, {Other}, {Node, "system:nodes"}} {
		fmt.Fprintf(&file, "%s,%[2]s,%[2]s,%[3]s\n", tokenOf(u[0]), u[0], u[1])
	}
	return []byte(file.String())
}

// credentials are the keys, certificates and tokens of both servers.
type credentials struct {
	roots                            *x509.CertPool
	cert, key, tokens, serviceSigner string // files
}

// readCredentials reads the credentials of a folder, and creates them at the first start.
func readCredentials(dir string) (*credentials, error) {
	c := &credentials{
		cert: filepath.Join(dir, "serving.crt"), key: filepath.Join(dir, "serving.key"),
		tokens: filepath.Join(dir, "tokens.csv"), serviceSigner: filepath.Join(dir, "service.key"),
	}
	if _, err := os.Stat(c.cert); err != nil {
		if err := c.write(); err != nil {
			return nil, err
		}
	}
	data, err := os.ReadFile(c.cert)
	if err != nil {
		return nil, err
	}
	c.roots = x509.NewCertPool()
	if !c.roots.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s has no certificate", c.cert)
	}
	return c, nil
}

func (c *credentials) write() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		c.cert:          pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		c.key:           pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		c.serviceSigner: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(signer)}),
		c.tokens:        users(),
	} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// freeAddress returns a free address of the loopback interface. Its port is below the ephemeral ports,
// which outgoing connections use.
func freeAddress() (string, error) {
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+mathrand.IntN(12_000))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		return address, l.Close()
	}
	return "", errors.New("found no free port")
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
