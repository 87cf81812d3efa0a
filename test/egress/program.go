package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"sync"

	"github.com/anykind/anykind/test/program"
)

// Each program is built once.
var (
	anykind       = sync.OnceValues(program.Anykind)
	kubectl       = sync.OnceValues(program.Kubectl)
	kubeAPIServer = sync.OnceValues(program.KubeAPIServer)
	etcd          = sync.OnceValues(program.Etcd)

	konnectivityServer = sync.OnceValues(func() (string, error) {
		return program.OfKubernetes("konnectivity-server", "sigs.k8s.io/apiserver-network-proxy/cmd/server")
	})
	konnectivityAgent = sync.OnceValues(func() (string, error) {
		return program.OfKubernetes("konnectivity-agent", "./egress/agent")
	})
)

// A running program is a process, and its output so far.
type running struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu     sync.Mutex
	output bytes.Buffer
}

// start runs a program until ctx ends.
func start(ctx context.Context, path string, args ...string) (*running, error) {
	return startCommand(exec.CommandContext(ctx, path, args...))
}

func startCommand(cmd *exec.Cmd) (*running, error) {
	r := &running{cmd: cmd, ended: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = r, r
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		r.cmd.Wait()
		close(r.ended)
	}()
	return r, nil
}

// Write implements io.Writer.
func (r *running) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.Write(b)
}

func (r *running) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.String()
}

// kill kills the process, and waits for its end.
func (r *running) kill() {
	r.cmd.Process.Kill() // fails only after the end of the process
	<-r.ended
}

// freePorts returns free ports. None is an ephemeral port, which Konnectivity rejects.
func freePorts(n int) ([]string, error) {
	var ports []string
	for tries := 0; len(ports) < n; tries++ {
		if tries == 1000 {
			return nil, errors.New("there is no free port")
		}
		port := strconv.Itoa(15000 + rand.IntN(16000))
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			continue
		}
		defer l.Close()
		ports = append(ports, port)
	}
	return ports, nil
}

func ended(r *running, name string) error {
	return fmt.Errorf("%s ended with %v, and wrote\n%s", name, r.cmd.ProcessState, r)
}
