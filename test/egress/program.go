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

// Each program is brought up to date once.
var (
	anykind       = sync.OnceValues(program.Anykind)
	kubectl       = sync.OnceValues(program.Kubectl)
	kubeAPIServer = sync.OnceValues(program.KubeAPIServer)
	etcd          = sync.OnceValues(program.Etcd)

	konnectivityServer = sync.OnceValues(func() (string, error) {
		return program.OfKubernetes("konnectivity-server", "test/egress", "sigs.k8s.io/apiserver-network-proxy/cmd/server")
	})
	konnectivityAgent = sync.OnceValues(func() (string, error) {
		return program.OfKubernetes("konnectivity-agent", "test/egress", "./agent")
	})
)

// A running program is a process, and what it has written so far.
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

// kill ends the process as it stands, and returns when it is gone.
func (r *running) kill() {
	r.cmd.Process.Kill() // fails only if it has ended
	<-r.ended
}

// freePorts returns ports at which nobody listens. Konnectivity takes none that the system gives to
// clients.
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
