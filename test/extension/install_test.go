package extension

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

// Names in the manifest.
const (
	system  = "anykind-system"
	service = "anykind"
)

// manifest returns the objects that install anykind.
func manifest(t *testing.T) (all []*unstructured.Unstructured) {
	t.Helper()
	top, err := program.Top()
	must(t, err)
	data, err := os.ReadFile(filepath.Join(top, "docs", "examples", "extension.yaml"))
	must(t, err)
	for documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		o := &unstructured.Unstructured{}
		err := documents.Decode(o)
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		all = append(all, o)
	}
}

// An extension is anykind as a process, in place of the manifest's pod.
type extension struct {
	t      *testing.T // the process stops at its end
	server *process.Server
	admin  *rest.Config // its own administrator
	args   []string
	dir    string
	path   string
}

// install applies the manifest, and runs its container as a process of this machine: with the
// arguments of the container, the files of its volumes, and the token of its ServiceAccount.
func (c *cluster) install(t *testing.T, path string) *extension {
	t.Helper()
	objects := manifest(t)
	apply(t, c.objects, objects)
	e := &extension{t: t, path: path, dir: filepath.Join(t.TempDir(), "data")}
	pod := podOf(t, objects)
	mounts := map[string]string{"/data": e.dir}
	for _, v := range pod.Volumes {
		mounts[mountOf(t, pod, v.Name)] = c.volume(t, objects, v)
	}
	mounts["InClusterConfig"] = c.kubeconfig(t, c.token(t, system, pod.ServiceAccountName))
	for _, arg := range pod.Containers[0].Args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		if known, ok := mounts[value]; ok {
			value = known
		}
		if name != "--data-dir" && name != "--bind-address" && name != "--secure-port" { // the process has its own
			e.args = append(e.args, name+"="+value)
		}
	}
	must(t, e.start("0.0.0.0:0"))
	t.Cleanup(func() {
		if err := e.server.Stop(); err != nil {
			t.Error(err)
		}
	})
	_, port, err := net.SplitHostPort(e.server.Address())
	must(t, err)
	number, err := strconv.Atoi(port)
	must(t, err)
	c.serve(t, system, service, number)
	c.served(t)
	return e
}

// start starts the process.
func (e *extension) start(address string) (err error) {
	if e.server, err = process.Start(context.WithoutCancel(e.t.Context()), e.path, e.dir, address, e.args...); err != nil {
		return err
	}
	e.admin, err = clientcmd.BuildConfigFromFlags("", e.server.Kubeconfig)
	return err
}

// served waits until the APIService is available.
func (c *cluster) served(t *testing.T) {
	t.Helper()
	eventually(t, "the APIService is available", func(ctx context.Context) error {
		o, err := c.objects.Resource(apiServices).Get(ctx, "v1.stable.example.com", getOptions)
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, each := range conditions {
			if condition := each.(map[string]any); condition["type"] == "Available" && condition["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("%v", conditions)
	})
}

// podOf returns the pod spec of the StatefulSet.
func podOf(t *testing.T, objects []*unstructured.Unstructured) *corev1.PodSpec {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == "StatefulSet" {
			var s appsv1.StatefulSet
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &s))
			return &s.Spec.Template.Spec
		}
	}
	t.Fatal("the manifest has no StatefulSet")
	return nil
}

func mountOf(t *testing.T, pod *corev1.PodSpec, volume string) string {
	t.Helper()
	for _, m := range pod.Containers[0].VolumeMounts {
		if m.Name == volume {
			return m.MountPath
		}
	}
	t.Fatalf("the volume %s is mounted nowhere", volume)
	return ""
}

// volume creates a folder with the files of a ConfigMap of the manifest.
func (c *cluster) volume(t *testing.T, objects []*unstructured.Unstructured, v corev1.Volume) string {
	t.Helper()
	dir := t.TempDir()
	for _, o := range objects {
		if o.GetKind() != "ConfigMap" || o.GetName() != v.ConfigMap.Name {
			continue
		}
		files, _, err := unstructured.NestedStringMap(o.Object, "data")
		must(t, err)
		for name, text := range files {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		return dir
	}
	t.Fatalf("the manifest has no ConfigMap %s", v.ConfigMap.Name)
	return ""
}
