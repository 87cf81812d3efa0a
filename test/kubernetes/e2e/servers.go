package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/test/kubernetes/e2e/node"
	"github.com/anykind/anykind/test/kubernetes/known"
	"github.com/anykind/anykind/test/process"
)

// runTests runs the tests with a given program as kube-apiserver.
func runTests(ctx context.Context, o options, dir string, p programs, server string) (known.Run, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	named := filepath.Join(dir, "kube-apiserver")
	if err := os.Symlink(server, named); err != nil {
		return nil, err
	}
	// The tests' own timeout comes first, so that they report.
	ctx, cancel := context.WithTimeout(ctx, o.timeout+time.Minute)
	defer cancel()
	servers, err := process.StartReference(ctx, named, p.Etcd, dir, "--allow-privileged",
		"--advertise-address="+addresses.Addr().Next().String(), "--enable-aggregator-routing")
	if err != nil {
		return nil, err
	}
	defer servers.Kill()
	stop, err := startNode(ctx, dir, p.Agnhost, servers.Kubeconfig)
	if err != nil {
		return nil, err
	}
	defer stop()
	controllers, err := startControllers(ctx, dir, p.Controllers, servers.Kubeconfig)
	if err != nil {
		return nil, err
	}
	defer controllers.Wait() //nolint:errcheck // it is killed
	defer cancel()
	said, err := os.Create(filepath.Join(dir, "said.log"))
	if err != nil {
		return nil, err
	}
	defer said.Close()
	report := filepath.Join(dir, "report.json")
	tests := exec.CommandContext(ctx, p.Tests, "-kubeconfig="+servers.Kubeconfig, "-kubectl-path="+p.Kubectl, "-provider=skeleton", "-test.timeout=0",
		"-ginkgo.focus="+o.focus, "-ginkgo.skip="+o.skip, "-ginkgo.json-report="+report, "-ginkgo.no-color", "-ginkgo.v",
		"-ginkgo.timeout="+o.timeout.String(), "-disable-log-dump")
	tests.Dir = dir
	tests.Env = append(os.Environ(), "HOME="+dir) // kubectl's discovery cache is there
	tests.Stdout, tests.Stderr = said, said
	ended := tests.Run() // the report has the failures
	run, err := read(report)
	if err != nil {
		return nil, fmt.Errorf("%w (%v); see %s", err, ended, said.Name())
	}
	return run, nil
}

// addresses are the pod addresses. The first one is the server's.
var addresses = netip.MustParsePrefix("10.88.0.0/16")

// startNode starts the fake node, and returns a function that stops it.
func startNode(ctx context.Context, dir, agnhost, kubeconfig string) (stop func(), err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "node.log"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	failed := func(err error) { fmt.Fprintln(log, time.Now().Format(time.TimeOnly), err) }
	n := &node.Node{Client: client, Name: "node", Agnhost: agnhost, Dir: filepath.Join(dir, "pods"), Addresses: addresses, Failed: failed}
	if err := n.Add(ctx); err != nil {
		cancel()
		return nil, errors.Join(err, log.Close())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
		log.Close()
	}, nil
}

// startControllers starts kube-controller-manager without the node lifecycle controller.
func startControllers(ctx context.Context, dir, program, kubeconfig string) (*exec.Cmd, error) {
	log, err := os.Create(filepath.Join(dir, "kube-controller-manager.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, program, "--kubeconfig="+kubeconfig, "--secure-port=0", "--leader-elect=false",
		"--use-service-account-credentials", "--service-account-private-key-file="+filepath.Join(dir, "service-account.key"),
		"--root-ca-file="+filepath.Join(dir, "certificates", "apiserver.crt"), "--controllers=*,-node-lifecycle-controller")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd, cmd.Start()
}

// A spec is a test in the report.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	RunTime                 time.Duration
	Failure                 struct{ Message string }
}

// read reads the report, without the tests that were not selected.
func read(report string) (known.Run, error) {
	data, err := os.ReadFile(report)
	if err != nil {
		return nil, err
	}
	var suites []struct{ SpecReports []spec }
	if err := json.Unmarshal(data, &suites); err != nil {
		return nil, err
	}
	var run known.Run
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			ok := s.State == "passed"
			if s.LeafNodeType != "It" && ok || s.State == "pending" || s.State == "skipped" && s.Failure.Message == "" {
				continue
			}
			run = append(run, known.Result{Name: name(s), Passed: ok, Skipped: s.State == "skipped", Seconds: s.RunTime.Seconds(), Said: s.Failure.Message})
		}
	}
	return run, nil
}

// name returns the name of a test without blanks.
func name(s spec) string {
	words := strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText, strings.TrimPrefix(s.LeafNodeType, "It")), " ")
	return strings.Join(strings.Fields(strings.TrimPrefix(words, "[sig-api-machinery] ")), "-")
}
