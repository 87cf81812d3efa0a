// Package process runs the real program: it starts it, finds its address, and kills it.
//
// It knows the command line and what the program prints when it is ready. Its clients have the
// credentials of the administrator's kubeconfig, and connections of their own.
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

// A Server is the program, running.
type Server struct {
	URL        string
	Kubeconfig string        // the file
	Ready      time.Duration // from starting the process to its saying so

	cmd   *exec.Cmd
	log   *bytes.Buffer // what it wrote to stderr; to be read when it has ended
	ended chan struct{}
	err   error
}

var listens = regexp.MustCompile(`listens on (https://\S+)`)

// Start starts the program with the data in a folder and more flags, and returns
// when it is ready. The address is a free one if it is empty. When ctx ends, the
// process is killed.
func Start(ctx context.Context, program, dir, address string, flags ...string) (*Server, error) {
	host, port, found := strings.Cut(address, ":")
	if !found {
		host, port = "127.0.0.1", "0"
	}
	s := &Server{Kubeconfig: filepath.Join(dir, "admin.kubeconfig"), log: new(bytes.Buffer), ended: make(chan struct{})}
	flags = append([]string{"serve", "--data-dir", dir, "--bind-address", host, "--secure-port", port}, flags...)
	s.cmd = exec.CommandContext(ctx, program, flags...)
	s.cmd.Stderr = s.log
	// A pipe of our own: that of the Cmd must not be read once Wait was called.
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
		// What follows the first line is read as well: a program that nobody reads
		// is ended by the system.
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

// Kill ends the process as a loss of power ends it, as far as it can tell, and
// returns when it is gone.
func (s *Server) Kill() {
	s.cmd.Process.Kill() // fails only if it has ended
	<-s.ended
}

// Stop ends the process in order.
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

// PID is that of the process.
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
