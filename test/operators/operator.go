package operators

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/test/program"
)

// Build builds a program of the modules under programs into a folder.
func Build(ctx context.Context, dir, pkg string) (string, error) {
	top, err := program.Top()
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, strings.NewReplacer("/", "_", ".", "_").Replace(pkg))
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", out, pkg)
	build.Dir = filepath.Join(top, "test", "operators", filepath.FromSlash(ModuleFor(pkg)))
	build.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, said)
	}
	return out, nil
}

// ModuleFor returns the folder of the module here for the build of a package.
func ModuleFor(pkg string) string {
	if strings.HasPrefix(pkg, "github.com/open-policy-agent/gatekeeper/") {
		return "programs/gatekeeper"
	}
	return "programs"
}

// An Operator is a Deployment of a project whose container runs as a process.
type Operator struct {
	Deployment string // NAMESPACE/NAME
	// Flags follow the container's own. Mounts are the Secrets of the container's volumes that the
	// process needs, by the flag with their path.
	Flags  []string
	Mounts map[string]string // flag: Secret
}

// A Process is a running Operator.
type Process struct {
	command *exec.Cmd
	mu      sync.Mutex
	log     bytes.Buffer
}

func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

// Log returns the output so far.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Stop kills the process.
func (p *Process) Stop() {
	p.command.Process.Kill() // fails only after the end of the process
	p.command.Wait()
}

// Start runs a program as the only container of a Deployment: with its arguments and its environment,
// with its Secrets as files, and with the token of the Deployment's ServiceAccount.
func (c *Cluster) Start(ctx context.Context, programFile string, o Operator, documents []*Document) (*Process, error) {
	deployment, err := find(documents, o.Deployment)
	if err != nil {
		return nil, err
	}
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	kubeconfig := c.AccountFile(pod.ServiceAccountName)
	if err := c.account(ctx, kubeconfig, deployment.Namespace, pod.ServiceAccountName); err != nil {
		return nil, err
	}
	if err := c.pod(ctx, deployment); err != nil {
		return nil, err
	}
	var args []string
	args = append(args, container.Command[min(1, len(container.Command)):]...)
	args = append(args, container.Args...)
	args = append(args, o.Flags...)
	for _, flag := range slices.Sorted(maps.Keys(o.Mounts)) {
		if err := c.mount(ctx, deployment.Namespace, "secret", o.Mounts[flag]); err != nil {
			return nil, err
		}
		args = append(args, flag+"="+c.mounted(o.Mounts[flag]))
	}
	if err := c.mountConfiguration(ctx, deployment.Namespace, pod, args); err != nil {
		return nil, err
	}
	env := environment(deployment, container)
	for i := range args {
		args[i] = expand(args[i], env)
	}
	p := &Process{command: exec.CommandContext(ctx, programFile, args...)}
	p.command.Env = []string{"HOME=" + c.Dir, "KUBECONFIG=" + kubeconfig}
	for name, value := range env {
		p.command.Env = append(p.command.Env, name+"="+value)
	}
	p.command.Dir = c.Dir
	p.command.Stdout, p.command.Stderr = p, p
	return p, p.command.Start()
}

// AccountFile returns the kubeconfig of a ServiceAccount.
func (c *Cluster) AccountFile(account string) string {
	return filepath.Join(c.Dir, account+".kubeconfig")
}

// podName is the name of the only pod of a Deployment.
func podName(d *appsv1.Deployment) string { return d.Name + "-0" }

// pod creates the pod of a Deployment: some programs get their own pod.
func (c *Cluster) pod(ctx context.Context, d *appsv1.Deployment) error {
	pod := corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: *d.Spec.Template.Spec.DeepCopy()}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	pod.Namespace, pod.Name = d.Namespace, podName(d)
	data, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	file := filepath.Join(c.Dir, pod.Name+".json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	if _, said, err := c.Run(ctx, "create", "-f", file); err != nil {
		return fmt.Errorf("pod %s: %w: %s", pod.Name, err, said)
	}
	return nil
}

// find returns a Deployment.
func find(documents []*Document, name string) (*appsv1.Deployment, error) {
	for _, d := range documents {
		if d.Kind != "Deployment" {
			continue
		}
		var found appsv1.Deployment
		if err := yaml.Unmarshal(d.YAML, &found); err != nil {
			return nil, err
		}
		if found.Namespace+"/"+found.Name == name {
			return &found, nil
		}
	}
	return nil, fmt.Errorf("no Deployment %s is published", name)
}

// environment returns the environment of a container, as far as it identifies its pod.
func environment(d *appsv1.Deployment, c corev1.Container) map[string]string {
	env := map[string]string{}
	for _, v := range c.Env {
		if v.ValueFrom == nil {
			env[v.Name] = v.Value
			continue
		}
		if v.ValueFrom.FieldRef == nil {
			continue
		}
		switch v.ValueFrom.FieldRef.FieldPath {
		case "metadata.namespace":
			env[v.Name] = d.Namespace
		case "metadata.name":
			env[v.Name] = podName(d)
		case "status.podIP", "status.hostIP":
			env[v.Name] = "127.0.0.1"
		case "spec.serviceAccountName":
			env[v.Name] = d.Spec.Template.Spec.ServiceAccountName
		}
	}
	for name, value := range env {
		env[name] = expand(value, env)
	}
	return env
}

// variable matches a reference to the environment in a container's arguments.
var variable = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

func expand(text string, env map[string]string) string {
	return variable.ReplaceAllStringFunc(text, func(found string) string { return env[found[2:len(found)-1]] })
}

// account writes a kubeconfig with a token of a ServiceAccount as its only credentials.
func (c *Cluster) account(ctx context.Context, file, namespace, name string) error {
	token, said, err := c.Run(ctx, "create", "token", name, "--namespace", namespace, "--duration", "1h")
	if err != nil {
		return fmt.Errorf("token of %s: %w: %s", name, err, said)
	}
	shown, said, err := c.Run(ctx, "config", "view", "--raw", "--flatten", "-o", "json")
	if err != nil {
		return fmt.Errorf("kubeconfig: %w: %s", err, said)
	}
	var config map[string]any
	if err := json.Unmarshal([]byte(shown), &config); err != nil {
		return err
	}
	users, _ := config["users"].([]any)
	for _, u := range users {
		u.(map[string]any)["user"] = map[string]any{"token": strings.TrimSpace(token)}
	}
	data, err := json.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// mounted is the folder of a Secret or ConfigMap.
func (c *Cluster) mounted(name string) string { return filepath.Join(c.Dir, "mounted-"+name) }

// mountConfiguration mounts the ConfigMaps of a pod at the paths of its only container.
func (c *Cluster) mountConfiguration(ctx context.Context, namespace string, pod corev1.PodSpec, args []string) error {
	for _, v := range pod.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		if err := c.mount(ctx, namespace, "configmap", v.ConfigMap.Name); err != nil {
			return err
		}
		for _, m := range pod.Containers[0].VolumeMounts {
			if m.Name != v.Name {
				continue
			}
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], m.MountPath, filepath.Join(c.mounted(v.ConfigMap.Name), m.SubPath))
			}
		}
	}
	return nil
}

// mount writes a Secret or a ConfigMap as files, as a node does for a pod.
func (c *Cluster) mount(ctx context.Context, namespace, kind, name string) error {
	got, said, err := c.Run(ctx, "get", kind, name, "--namespace", namespace, "-o", "json")
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", kind, name, err, said)
	}
	files := map[string][]byte{}
	if kind == "secret" {
		var secret corev1.Secret
		err = json.Unmarshal([]byte(got), &secret)
		files = secret.Data
	} else {
		var config corev1.ConfigMap
		err = json.Unmarshal([]byte(got), &config)
		for key, text := range config.Data {
			files[key] = []byte(text)
		}
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.mounted(name), 0o700); err != nil {
		return err
	}
	for key, data := range files {
		file := filepath.Join(c.mounted(name), key)
		if was, err := os.ReadFile(file); err == nil && bytes.Equal(was, data) {
			continue
		}
		// Readers see whole files only.
		if err := os.WriteFile(file+".new", data, 0o600); err != nil {
			return err
		}
		if err := os.Rename(file+".new", file); err != nil {
			return err
		}
	}
	return nil
}

// Outside turns a Service of documents into one for a process on this machine: it gets an
// ExternalName, and webhook configurations for it get the port of the process. An EndpointSlice cannot
// have a loopback address.
func Outside(documents []*Document, service string, port int) error {
	for _, d := range documents {
		var tree map[string]any
		if err := yaml.Unmarshal(d.YAML, &tree); err != nil {
			return err
		}
		metadata, _ := tree["metadata"].(map[string]any)
		if d.Kind == "Service" && metadata["name"] == service {
			tree["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		} else if d.Definition() || strings.HasSuffix(d.Kind, "WebhookConfiguration") {
			redirect(tree, service, port)
		} else {
			continue
		}
		data, err := yaml.Marshal(tree)
		if err != nil {
			return err
		}
		d.YAML = data
	}
	return nil
}

// redirect sets the port in each client configuration for a Service.
func redirect(value any, service string, port int) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			redirect(item, service, port)
		}
	case map[string]any:
		if client, ok := v["clientConfig"].(map[string]any); ok {
			if of, ok := client["service"].(map[string]any); ok && of["name"] == service {
				of["port"] = port
			}
		}
		for _, item := range v {
			redirect(item, service, port)
		}
	}
}
