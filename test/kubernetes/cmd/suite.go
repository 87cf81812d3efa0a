package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/anykind/anykind/test/kubernetes/known"
	"github.com/anykind/anykind/test/kubernetes/published"
	"github.com/anykind/anykind/test/program"
)

// copied are the files and folders that the suite reads.
var copied = []string{"hack", "test/cmd", "test/fixtures", "test/e2e/testing-manifests", "third_party/forked/shell2junit"}

// programs are the paths of the programs that the suite calls.
type programs struct {
	kubectl, convert, controllers, kubeAPIServer, etcd, anykind string
}

func build() (p programs, err error) {
	for _, b := range []struct {
		path  *string
		build func() (string, error)
	}{
		{&p.convert, func() (string, error) {
			return program.OfKubernetes("kubectl-convert", "k8s.io/kubernetes/cmd/kubectl-convert")
		}},
		{&p.kubectl, program.Kubectl}, {&p.controllers, program.KubeControllerManager}, {&p.kubeAPIServer, program.KubeAPIServer}, {&p.etcd, program.Etcd}, {&p.anykind, program.Anykind},
	} {
		if *b.path, err = b.build(); err != nil {
			return p, err
		}
	}
	return p, nil
}

// runSuite runs the suite in a folder of its own, with a given program as kube-apiserver.
func runSuite(o options, side, dir string, p programs, server string) (known.Run, error) {
	if err := place(dir, p, server); err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout)
	defer cancel()
	suite := exec.CommandContext(ctx, "bash", "hack/make-rules/test-cmd.sh")
	suite.Dir = filepath.Join(dir, "kubernetes")
	suite.Env = append(os.Environ(),
		"PATH="+filepath.Join(dir, "path")+string(os.PathListSeparator)+os.Getenv("PATH"),
		"ETCD_PORT="+ports[0], "SECURE_API_PORT="+ports[1], "SECURE_CTLRMGR_PORT="+ports[2],
		"SERVICE_ACCOUNT_KEY="+filepath.Join(dir, "tmp", "serviceaccount.key"),
		"TMPDIR="+filepath.Join(dir, "tmp"), "KUBE_JUNIT_REPORT_DIR="+filepath.Join(dir, "junit"),
		// Our version differs from kubectl's, and both report it.
		"ALLOW_SKEW=1", "TERM=xterm", "KUBECONFIG=", "WHAT="+o.what)
	// The suite starts servers and proxies. A process group lets them end with it.
	suite.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	suite.Cancel = func() error { return syscall.Kill(-suite.Process.Pid, syscall.SIGKILL) }
	suite.WaitDelay = 10 * time.Second
	said, err := suite.StdoutPipe()
	if err != nil {
		return nil, err
	}
	suite.Stderr = suite.Stdout
	if err := suite.Start(); err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Kill(-suite.Process.Pid, syscall.SIGKILL) }()
	s := &sections{server: side, dir: filepath.Join(dir, "failed"), verbose: o.verbose}
	wrong := s.read(said)
	ended := suite.Wait()
	if wrong == nil && !s.whole {
		wrong = fmt.Errorf("the suite ended between sections (%v), after it said\n%s", ended, s.between.String())
	}
	return s.run, wrong
}

// place fills the folder: the input of the suite, and the programs at their expected paths.
func place(dir string, p programs, server string) error {
	source, err := published.Source()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	root := filepath.Join(dir, "kubernetes")
	bin, path := filepath.Join(root, "_output", "bin"), filepath.Join(dir, "path")
	for _, folder := range []string{bin, path, filepath.Join(dir, "tmp"), filepath.Join(dir, "junit"), filepath.Join(dir, "failed")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	if err := published.Copy(root, source, copied...); err != nil {
		return err
	}
	// Plugins get the path of kubectl without symbolic links.
	if err := published.Place(filepath.Join(bin, "kubectl"), p.kubectl); err != nil {
		return err
	}
	links := [][2]string{
		{server, filepath.Join(bin, "kube-apiserver")}, {p.etcd, filepath.Join(path, "etcd")},
		{p.convert, filepath.Join(bin, "kubectl-convert")},
	}
	for _, link := range links {
		if err := os.Symlink(link[0], link[1]); err != nil {
			return err
		}
	}
	// The suite passes no port to kube-controller-manager, and everything is built already.
	for name, line := range map[string]string{
		filepath.Join(bin, "kube-controller-manager"): "exec '" + p.controllers + `' --secure-port="${SECURE_CTLRMGR_PORT}" "$@"`,
		filepath.Join(path, "make"):                   "exit 0",
	} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+line+"\n"), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// freePorts returns free ports of this machine.
func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// sections parses the output of the suite into sections.
type sections struct {
	server  string // name of the side
	dir     string // folder for the output of failed sections
	verbose bool

	run     known.Run
	whole   bool // the suite has run to its end
	between lastLines

	name  string
	since time.Time
	said  bytes.Buffer
}

// lastLines keeps the last few lines.
type lastLines []string

func (l *lastLines) add(line string) {
	*l = append(*l, line)
	if len(*l) > 40 {
		*l = (*l)[1:]
	}
}

func (l *lastLines) String() string { return strings.Join(*l, "\n") }
