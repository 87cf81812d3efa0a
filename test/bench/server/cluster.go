package server

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/anykind/anykind/test/program"
)

// A Cluster is the other programs of a cluster: the published scheduler and controller manager, and kwok
// as the kubelets of all nodes. Its processes are not in the Usage of the server.
type Cluster struct {
	processes []*process
	ended     chan error
}

// The clients of a cluster wait for the server, and not for their own limits.
const clusterRate = "5000"

// StartCluster starts the programs with their defaults, besides limits of their own requests. Their files are in dir, and those of
// the server in another folder.
func (s *Server) StartCluster(dir, of string) (*Cluster, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	certs, err := readCredentials(of)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "kubeconfig")
	err = os.WriteFile(config, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: bench, cluster: {server: "https://%s", certificate-authority: %q}}]
users: [{name: bench, user: {token: %q}}]
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
current-context: bench
`, s.Target.Address, certs.cert, tokenOf(Administrator)), 0o600)
	if err != nil {
		return nil, err
	}
	stages, err := writeStages(dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{ended: make(chan error, 8)}
	rate := []string{"--kube-api-qps=" + clusterRate, "--kube-api-burst=" + clusterRate}
	for _, p := range []struct {
		build func() (string, error)
		args  []string
	}{
		{program.KubeControllerManager, append(rate, "--kubeconfig="+config, "--leader-elect=false", "--secure-port=0", "--service-account-private-key-file="+certs.serviceSigner, "--root-ca-file="+certs.cert)},
		{program.KubeScheduler, append(rate, "--kubeconfig="+config, "--leader-elect=false", "--secure-port=0")},
		{program.Kwok, []string{"--kubeconfig=" + config, "--manage-all-nodes", "--config=" + stages, "--node-lease-duration-seconds=40"}},
	} {
		path, err := p.build()
		if err == nil {
			err = c.start(path, dir, p.args)
		}
		if err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	return c, nil
}

// writeStages writes the stages that kwok publishes: nodes with heartbeats, and pods that are ready at once.
func writeStages(dir string) (string, error) {
	const kwok = "sigs.k8s.io/kwok"
	modules, err := program.Published(program.Further, kwok)
	if err != nil {
		return "", err
	}
	var all []byte
	for _, folder := range []string{"node/fast", "node/heartbeat-with-lease", "pod/fast"} {
		files, err := filepath.Glob(filepath.Join(modules[kwok].Dir, "kustomize", "stage", folder, "*-*.yaml"))
		if err != nil || len(files) == 0 {
			return "", fmt.Errorf("kwok has no stages in %s: %w", folder, err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				return "", err
			}
			all = append(append(all, data...), "\n---\n"...)
		}
	}
	name := filepath.Join(dir, "stages.yaml")
	return name, os.WriteFile(name, all, 0o600)
}

func (c *Cluster) start(path, dir string, args []string) error {
	name := filepath.Base(path)
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	c.processes = append(c.processes, &process{name, cmd})
	go func() { c.ended <- fmt.Errorf("%s ended: %v; it wrote %s", name, cmd.Wait(), last(log.Name())) }()
	return nil
}

// Failed returns the error of a program that has ended; nil if all run.
func (c *Cluster) Failed() error {
	select {
	case err := <-c.ended:
		c.ended <- err
		return err
	default:
		return nil
	}
}

// Stop ends the programs.
func (c *Cluster) Stop() error {
	var failed error
	for _, p := range c.processes {
		if p.Process.Signal(syscall.SIGTERM) != nil {
			continue // it has ended
		}
		select {
		case <-c.ended:
		case <-time.After(20 * time.Second):
			failed = errors.Join(failed, p.Process.Kill())
			<-c.ended
		}
	}
	c.processes = nil
	return failed
}

// Disk returns the bytes of the files below a folder that the server has allocated.
func Disk(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		return nil
	})
	return bytes, err
}
