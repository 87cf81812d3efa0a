package aggregation

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/anykind/anykind/test/program"
)

// install follows the fifteen steps of the page, and returns the running backend. Its Service leads to
// the address by an EndpointSlice. Without an address, it leads to the name of this machine.
func install(ctx context.Context, dir, kubeconfig, address string) (*backend, error) {
	module, err := published()
	if err != nil {
		return nil, err
	}
	example := func(name string) string { return filepath.Join(module, "artifacts", "example", name+".yaml") }
	b, err := newBackend(dir, "api.wardle.svc")
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	own := filepath.Join(dir, "own.yaml")
	if err := os.WriteFile(own, []byte(manifests(b.port, address, base64.StdEncoding.EncodeToString(ca))), 0o600); err != nil {
		return nil, err
	}
	k := kubectl{ctx, kubeconfig}
	if _, err := k.run("apply", "-f", example("ns")); err != nil {
		return nil, err
	}
	_, err = k.run("apply", "-f", example("sa"), "-f", example("rbac"), "-f", example("rbac-bind"), "-f", example("auth-delegator"), "-f", example("auth-reader"), "-f", own)
	if err != nil {
		return nil, err
	}
	token, err := k.run("create", "token", "apiserver", "--namespace=wardle")
	if err != nil {
		return nil, err
	}
	if err := writeKubeconfig(b.config, kubeconfig, strings.TrimSpace(token)); err != nil {
		return nil, err
	}
	if err := b.start(ctx); err != nil {
		return b, err
	}
	_, err = k.run("wait", "apiservice", "v1alpha1.wardle.example.com", "v1beta1.wardle.example.com", "--for=condition=Available", "--timeout=1m")
	if err != nil {
		return b, err
	}
	return b, k.eventually("get", "flunders")
}

// manifests are the manifests that the module lacks: the Service, which leads to a process on this
// machine.
func manifests(port, address, ca string) string {
	text := serviceOf(port, address) + `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: policies
rules:
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingadmissionpolicies, mutatingadmissionpolicybindings]
  verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: policies
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: policies}
subjects: [{kind: ServiceAccount, namespace: wardle, name: apiserver}]
`
	for i, version := range []string{"v1alpha1", "v1beta1"} {
		text += fmt.Sprintf(`---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: %[1]s.wardle.example.com
spec:
  group: wardle.example.com
  version: %[1]s
  groupPriorityMinimum: 1000
  versionPriority: %[2]d
  service: {namespace: wardle, name: api, port: %[3]s}
  caBundle: %[4]s
`, version, 15-5*i, port, ca)
	}
	return text
}

func serviceOf(port, address string) string {
	if address == "" {
		return `apiVersion: v1
kind: Service
metadata: {name: api, namespace: wardle}
spec:
  type: ExternalName
  externalName: localhost
  ports: [{port: ` + port + `}]
`
	}
	return `apiVersion: v1
kind: Service
metadata: {name: api, namespace: wardle}
spec:
  ports: [{name: https, port: ` + port + `}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: api, namespace: wardle, labels: {kubernetes.io/service-name: api}}
addressType: IPv4
ports: [{name: https, port: ` + port + `}]
endpoints: [{addresses: ["` + address + `"]}]
`
}

// A kubectl runs the published kubectl as an administrator.
type kubectl struct {
	ctx        context.Context
	kubeconfig string
}

// run returns the output.
func (k kubectl) run(args ...string) (string, error) {
	path, err := program.Kubectl()
	if err != nil {
		return "", err
	}
	c := exec.CommandContext(k.ctx, path, args...)
	home := filepath.Dir(k.kubeconfig)
	c.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig, "KUBERC=off", "HOME="+home)
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, said.String())
	}
	return string(out), nil
}

// eventually retries until it succeeds.
func (k kubectl) eventually(args ...string) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(waitTimeout); ; {
		_, err := k.run(args...)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-deadline:
			return err
		}
	}
}
