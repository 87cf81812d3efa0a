package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/anykind/anykind/test/program"
)

// A component is a published program of a control plane, running as a process.
type component struct {
	program string // its name
	log     log
	at      string // address of its own endpoints

	cmd   *exec.Cmd
	ended chan struct{}
}

// Each program is built once.
var (
	anykind               = sync.OnceValues(program.Anykind)
	kubeScheduler         = sync.OnceValues(program.KubeScheduler)
	kubeControllerManager = sync.OnceValues(program.KubeControllerManager)
)

// builds returns the build functions of the programs.
func builds() map[string]func() (string, error) {
	return map[string]func() (string, error){
		"kube-scheduler": kubeScheduler, "kube-controller-manager": kubeControllerManager,
	}
}

// run starts a program in a folder. The end of ctx kills it.
func run(ctx context.Context, name, dir string, args ...string) (*component, error) {
	build, found := builds()[name]
	if !found {
		return nil, fmt.Errorf("there is no program %s to run", name)
	}
	path, err := build()
	if err != nil {
		return nil, err
	}
	at, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(at)
	c := &component{program: name, at: at, ended: make(chan struct{})}
	args = append([]string{"--bind-address=127.0.0.1", "--secure-port=" + port}, args...)
	c.cmd = exec.CommandContext(ctx, path, args...)
	c.cmd.Dir = dir
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

// healthy waits until the program's own health check succeeds.
func (c *component) healthy(ctx context.Context) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	for {
		answer, err := client.Get("https://" + c.at + "/healthz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-c.ended:
			return fmt.Errorf("%s ended with %v and logged\n%s", c.program, c.cmd.ProcessState, c.log.text())
		case <-ctx.Done():
			return fmt.Errorf("%s is not healthy: %w; it logged\n%s", c.program, ctx.Err(), c.log.text())
		}
	}
}

// kill kills the process, and waits for its end.
func (c *component) kill() {
	c.cmd.Process.Kill() // fails only after the end of the process
	<-c.ended
}

// stop stops the process gracefully.
func (c *component) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-c.ended
	return nil
}

// keep writes the log to a file of a folder, if one is named.
func (c *component) keep(dir, name string) error {
	if dir == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, name+".log"), []byte(c.log.text()), 0o644)
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
