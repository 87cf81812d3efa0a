package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/test/kubernetes/known"
	"github.com/anykind/anykind/test/process"
)

// runTests runs the tests with a program in the place of kube-apiserver.
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
	// The tests end themselves first, and report.
	ctx, cancel := context.WithTimeout(ctx, o.timeout+time.Minute)
	defer cancel()
	servers, err := process.StartReference(ctx, named, p.etcd, dir, "--allow-privileged")
	if err != nil {
		return nil, err
	}
	defer servers.Kill()
	if err := addNode(ctx, servers.Kubeconfig); err != nil {
		return nil, err
	}
	controllers, err := startControllers(ctx, dir, p.controllers, servers.Kubeconfig)
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
	tests := exec.CommandContext(ctx, p.tests, "-kubeconfig="+servers.Kubeconfig, "-kubectl-path="+p.kubectl, "-provider=skeleton", "-test.timeout=0",
		"-ginkgo.focus="+o.focus, "-ginkgo.skip="+o.skip, "-ginkgo.json-report="+report, "-ginkgo.no-color", "-ginkgo.v",
		"-ginkgo.timeout="+o.timeout.String(), "-disable-log-dump")
	tests.Dir = dir
	tests.Env = append(os.Environ(), "HOME="+dir) // where kubectl remembers what servers have
	tests.Stdout, tests.Stderr = said, said
	ended := tests.Run() // the report says what failed
	run, err := read(report)
	if err != nil {
		return nil, fmt.Errorf("%w (%v); see %s", err, ended, said.Name())
	}
	return run, nil
}

// addNode adds a node that says it is ready, without which no test begins. Nothing runs there.
func addNode(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	node, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Spec.Taints = nil // which a node gets until somebody has seen that it is ready
	_, err = client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	return err
}

// startControllers starts kube-controller-manager. There are no nodes to lose.
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

// read reads the report. Tests that were not asked for are left out.
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

// name is that of a test without blanks.
func name(s spec) string {
	words := strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText, strings.TrimPrefix(s.LeafNodeType, "It")), " ")
	return strings.Join(strings.Fields(strings.TrimPrefix(words, "[sig-api-machinery] ")), "-")
}
