// Package process runs the real program: it starts it, finds its address, and kills it.
//
// It knows the command line and the message of a ready program. Its clients have the credentials of
// the administrator's kubeconfig, and connections of their own.
package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A Server is the running program.
type Server struct {
	URL        string
	Kubeconfig string        // the file
	Ready      time.Duration // from the start of the process to its message

	cmd   *exec.Cmd
	log   *bytes.Buffer // its stderr; read after its end
	ended chan struct{}
	err   error
}

var listens = regexp.MustCompile(`listens on (https://\S+)`)

// Start starts the program with the data in a folder and additional flags, and waits until it is
// ready. With an empty address, it chooses a free one. The end of ctx kills the process.
func Start(ctx context.Context, program, dir, address string, flags ...string) (*Server, error) {
	host, port, found := strings.Cut(address, ":")
	if !found {
		host, port = "127.0.0.1", "0"
	}
	s := &Server{Kubeconfig: filepath.Join(dir, "admin.kubeconfig"), log: new(bytes.Buffer), ended: make(chan struct{})}
	flags = append([]string{"serve", "--data-dir", dir, "--bind-address", host, "--secure-port", port}, flags...)
	s.cmd = exec.CommandContext(ctx, program, flags...)
	s.cmd.Stderr = s.log
	// A pipe of our own: a pipe of the Cmd must not be read after Wait.
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stdout = in
	began := time.Now()
	err = s.cmd.Start()
	in.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	greeting := make(chan string, 1)
	go func() {
		// Later lines are read, too: a program whose pipe has no reader gets SIGPIPE.
		lines := bufio.NewReader(out)
		first, _ := lines.ReadString('\n')
		greeting <- first
		io.Copy(io.Discard, lines)
		out.Close()
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	said := <-greeting
	if m := listens.FindStringSubmatch(said); m != nil {
		s.URL, s.Ready = m[1], time.Since(began)
		return s, nil
	}
	s.Kill()
	return nil, fmt.Errorf("the server did not start: it said %q, ended with %v, and wrote\n%s", said, s.err, s.log)
}

// Address is host:port of the server.
func (s *Server) Address() string { return strings.TrimPrefix(s.URL, "https://") }

// Kill kills the process, as close to a power failure as possible, and waits for its end.
func (s *Server) Kill() {
	s.cmd.Process.Kill() // fails only after the end of the process
	<-s.ended
}

// Stop stops the process gracefully.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.ended
	if s.err != nil {
		return fmt.Errorf("the server ended with %w and wrote\n%s", s.err, s.log)
	}
	return nil
}

// PID is the ID of the process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Client returns a client with connections of its own.
func Client(kubeconfig string) (*http.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true}}, nil
}
