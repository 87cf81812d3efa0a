// Package server starts a kube-apiserver as a process, for tests of Kubernetes that start theirs in
// their own process.
//
// It knows the flags for options, and the credentials of an administrator. It knows nothing of the
// tests.
package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// variable names the program. Without it, tests start their original server.
const variable = "ANYKIND_KUBE_APISERVER"

// Wanted reports whether to start a process.
func Wanted() bool { return os.Getenv(variable) != "" }

// adminToken is the bearer token of an administrator.
const adminToken = "token-of-the-administrator"

// A Server is a process.
type Server struct {
	// Config is the client configuration of the administrator.
	Config *rest.Config
	// Port is the port of the server, and CertFile its certificate.
	Port     int
	CertFile string

	program *exec.Cmd
	ended   chan struct{}
	said    tail
}

// Start returns a Server that is ready. It stores its certificate in dir, and accepts the tokens of a
// file, if there is one. host is the name of its host; "" is that of this machine.
func Start(dir, host, tokens string, healthy bool, flags []string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "tokens-and-administrator.csv")
	if err := addAdministrator(file, tokens); err != nil {
		return nil, err
	}
	flags = append(flags, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port), "--cert-dir="+dir, "--token-auth-file="+file)
	s := &Server{Port: port, CertFile: filepath.Join(dir, "apiserver.crt"), ended: make(chan struct{})}
	s.program = exec.Command(os.Getenv(variable), flags...)
	s.program.SysProcAttr = withTest()
	s.program.Stderr = &s.said
	s.program.Stdout = &s.said
	if err := s.begin(host); err != nil {
		return nil, err
	}
	if err := s.ready(healthy); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%w; started with %q, the server said\n%s", err, flags, s.said.String())
	}
	return s, nil
}

// begin starts the process. With the name of a host, a thread of its own starts it: the name belongs to the thread.
func (s *Server) begin(host string) error {
	started := make(chan error)
	go func() {
		defer close(s.ended)
		var err error
		if host != "" {
			runtime.LockOSThread() // never unlocked: the thread has another host name
			err = rename(host)
		}
		if err == nil {
			err = s.program.Start()
		}
		started <- err
		if err == nil {
			_ = s.program.Wait()
		}
	}()
	return <-started
}

// addAdministrator writes a token file with the administrator and the tokens of another file.
func addAdministrator(file, other string) error {
	var lines []byte
	if other != "" {
		var err error
		if lines, err = os.ReadFile(other); err != nil {
			return err
		}
		lines = append(bytes.TrimSpace(lines), '\n')
	}
	return os.WriteFile(file, append(lines, adminToken+",system:apiserver,administrator,system:masters\n"...), 0o600)
}

// ready waits until the server has created its namespaces.
func (s *Server) ready(healthy bool) error {
	errEnded := errors.New("the server ended")
	certified := func(context.Context) (bool, error) {
		select {
		case <-s.ended:
			return false, errEnded
		default:
		}
		data, err := os.ReadFile(s.CertFile)
		s.Config = &rest.Config{
			Host: "https://127.0.0.1:" + strconv.Itoa(s.Port), BearerToken: adminToken, QPS: 1000, Burst: 10000,
			TLSClientConfig: rest.TLSClientConfig{CAData: data},
		}
		return err == nil && len(data) > 0, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const often = 10 * time.Millisecond
	if err := wait.PollUntilContextCancel(ctx, often, true, certified); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, often, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.ended:
			return false, errEnded
		default:
		}
		if healthy {
			if _, err := client.Discovery().RESTClient().Get().AbsPath("/healthz").DoRaw(ctx); err != nil {
				return false, nil
			}
		}
		for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
			if _, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); err != nil {
				return false, nil
			}
		}
		return true, nil
	})
}

// Stop stops the process.
func (s *Server) Stop() {
	_ = s.program.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(5 * time.Second):
		_ = s.program.Process.Kill()
		<-s.ended
	}
}

// Said returns the end of the process's output.
func (s *Server) Said() string { return s.said.String() }

// A tail keeps the end of its input.
type tail struct {
	sync.Mutex
	buffer bytes.Buffer
}

const kept = 16 << 10

func (t *tail) Write(data []byte) (int, error) {
	t.Lock()
	defer t.Unlock()
	if t.buffer.Len() > 2*kept {
		t.buffer.Next(t.buffer.Len() - kept)
	}
	return t.buffer.Write(data)
}

func (t *tail) String() string {
	t.Lock()
	defer t.Unlock()
	return t.buffer.String()
}

// freePort returns a free port of this machine.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
