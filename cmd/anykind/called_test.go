package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The program speaks of itself as it is called.
func TestCalled(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"anykind", kubectlName, completeName} {
		if err := os.Symlink(os.Args[0], filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, args, want string
	}{
		{"anykind", "crd diff --help", "git show v1.0:crd.yaml | anykind crd diff - crd.yaml"},
		{kubectlName, "crd diff --help", "git show v1.0:crd.yaml | kubectl anykind crd diff - crd.yaml"},
		{kubectlName, "crd diff --help", "  kubectl anykind crd diff OLD NEW [flags]\n"},
		{kubectlName, "crd lint --help", "kubectl anykind check validates these, too"},
		{kubectlName, "crd dif", `kubectl anykind: kubectl anykind crd takes no arguments, but was given "dif"; see kubectl anykind crd --help`},
		{kubectlName, "help check", "helm template mychart | kubectl anykind check -"},
		{kubectlName, "plugin --help", "  kubectl anykind plugin [command]\n"},
		{kubectlName, "completion bash", `unknown command "completion" for "kubectl anykind"`},
		{"anykind", "completion bash", "__start_anykind"},
		{"anykind", "plugin install a b", "anykind plugin install takes one folder, got 2"},
		{completeName, "", "check\t"},
		{completeName, "ch", "check\tValidate objects as a server would, offline\n:4\n"},
		{completeName, "crd try --da", "--data-dir\t"},
	} {
		cmd := exec.Command(filepath.Join(dir, tt.name), strings.Fields(tt.args)...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), tt.want) {
			t.Errorf("%s %s: no %q in\n%s", tt.name, tt.args, tt.want, out)
		}
	}
}

// A command can be a program of its own.
func TestAlone(t *testing.T) {
	lint := alone(asPlugin(anykindCommand("", time.Time{})), "kubectl create lint", "crd", "lint")
	if lint.HasParent() || lint.UseLine() != "kubectl create lint FILE... [flags]" || !strings.Contains(lint.Example, "  kubectl create lint config/crd/bases\n") {
		t.Errorf("%s\n%s", lint.UseLine(), lint.Example)
	}
}

// Where a server is asked, the flags are those of kubectl, and mean the same.
func TestServerFlags(t *testing.T) {
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"--server https://127.0.0.1:1", exitUnsure, "connection refused"},
		{"-s here", exitUnsure, `server is "here": want a URL`},
		{"", exitUnsure, "no server: set KUBECONFIG, --kubeconfig or --server"},
		{"--user you", exitUnsure, `no user "you"`},
		{"--kubeconfig gone", exitUnsure, "open gone: no such file or directory"},
		{"--request-timeout soon", exitUsage, `--request-timeout: "soon": want seconds`},
		{"--as-user-extra soon", exitUsage, `--as-user-extra is "soon"; want KEY=VALUE`},
		{"-o xml", exitUsage, "want one of text, json, yaml"},
	} {
		cmd, stderr := command(t, append([]string{"crd", "try", "-"}, strings.Fields(tt.args)...)...)
		cmd.Env = append(cmd.Env, "KUBECONFIG="+os.DevNull, "KUBERNETES_SERVICE_HOST=")
		cmd.Stdin = strings.NewReader(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.example.com"}}`)
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%s: exit code %d, want %d: %s", tt.args, code, tt.code, stderr)
		}
	}
}
