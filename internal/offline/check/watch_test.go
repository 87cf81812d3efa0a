package check

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// watching is a Watch of the folder in, with the number of requests for objects.
type watching struct {
	*Watch
	out      strings.Builder
	requests atomic.Int64
}

func watch(t *testing.T) *watching {
	t.Helper()
	t.Chdir(t.TempDir())
	w := &watching{Watch: &Watch{Paths: []string{"in"}}}
	w.Out = &w.out
	w.Options.Observe = func(Question, Answer) { w.requests.Add(1) }
	w.Check = func(ctx context.Context, o Options) (*Report, error) { return Run(ctx, w.Paths, nil, o) }
	return w
}

// want looks at the files, and compares the output and the number of requests.
func (w *watching) want(t *testing.T, output string, requests int64) {
	t.Helper()
	if err := w.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.out.String(); got != output {
		t.Errorf("printed\n%s\nwant\n%s", got, output)
	}
	if got := w.requests.Load(); got != requests {
		t.Errorf("%d requests, want %d", got, requests)
	}
	w.out.Reset()
	w.requests.Store(0)
}

const (
	watchedObject = "apiVersion: example.com/v1\nkind: A\nmetadata: {name: a}\nspec: {size: 99}\n"
	watchedRule   = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: as, kind: A}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 100}}}}}}
`
)

// Only changes of verdicts are printed, and only changed objects are checked, unless a definition
// changes.
func TestWatch(t *testing.T) {
	w := watch(t)
	writeFile(t, "in/crd.yaml", []byte(watchedRule))
	writeFile(t, "in/a.yaml", []byte(watchedObject))
	writeFile(t, "in/b.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"))
	w.want(t, "3 objects in 3 files: 3 accepted, 0 refused\n", 3)
	w.want(t, "", 0) // nothing has changed

	writeFile(t, "in/b.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, unknown: 1}\n"))
	w.want(t, "in/b.yaml:3:21: error: ConfigMap default/b: unknown field \"metadata.unknown\"\n3 objects in 3 files: 2 accepted, 1 refused\n", 2)
	writeFile(t, "in/b.yaml", []byte("# A line more.\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, unknown: 1}\n"))
	w.want(t, "", 2)
	writeFile(t, "in/crd.yaml", []byte(strings.Replace(watchedRule, "100", "50", 1)))
	w.want(t, "in/a.yaml:4:8: error: A a: spec.size: Invalid value: 99: spec.size in body should be less than or equal to 50\n3 objects in 3 files: 1 accepted, 2 refused\n", 3)
	writeFile(t, "in/a.yaml", []byte(strings.Replace(watchedObject, "99", "9", 1)))
	w.want(t, "in/a.yaml:1: A a: accepted\n3 objects in 3 files: 2 accepted, 1 refused\n", 2)
	if err := os.Remove("in/b.yaml"); err != nil {
		t.Fatal(err)
	}
	w.want(t, "in/b.yaml: ConfigMap default/b: removed\n2 objects in 2 files: 2 accepted, 0 refused\n", 1)
}

// An error is printed once, and the Watch goes on.
func TestWatchOfMissingFiles(t *testing.T) {
	w := watch(t)
	w.want(t, "error: stat in: no such file or directory\n", 0)
	writeFile(t, "in/b.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"))
	w.want(t, "1 object in 1 file: 1 accepted, 0 refused\n", 1)
}

// A kustomization has files of other folders.
func TestWatchedFilesOfKustomizations(t *testing.T) {
	w := watch(t)
	writeFile(t, "in/kustomization.yaml", []byte("resources: [../base, https://example.com/x]\npatches: [{path: ../patch.yaml}]\n"))
	writeFile(t, "base/kustomization.yaml", []byte("resources: [../more/a.yaml]"))
	writeFile(t, "more/a.yaml", nil)
	writeFile(t, "patch.yaml", nil)
	if got := strings.Join(w.files(), " "); got != "base in more/a.yaml patch.yaml" {
		t.Error(got)
	}
}
