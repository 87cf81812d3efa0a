package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const crontabFile = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// Definitions of files exist from the start and follow changes of the files. They stay after the
// removal of a file.
func TestCRDs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "crontabs.yaml")
	write(t, file, []byte("# first a comment\n---\n"+crontabFile))
	write(t, filepath.Join(dir, "README"), []byte("nonsense"))
	a := start(t, Options{CRDs: dir})
	defer stop(t, a)
	c := client(t, a, admin(t, a))
	const path = "/apis/stable.example.com/"
	if code, body := ask(t, c, "GET", a.URL()+path+"v1", "", ""); code != 200 || !strings.Contains(body, `"crontabs"`) {
		t.Fatalf("%d %s", code, body)
	}
	write(t, file, []byte(crontabFile+`  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`))
	for {
		code, _ := ask(t, c, "GET", a.URL()+path+"v2", "", "")
		if code == 200 {
			break
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	folder := &crdFolder{path: dir}
	if texts, err := folder.read(); err != nil || len(texts) != 0 {
		t.Errorf("%q, %v", texts, err)
	}
	if code, _ := ask(t, c, "GET", a.URL()+path+"v2", "", ""); code != 200 {
		t.Errorf("the definition went with its file: %d", code)
	}
}

// An object that is not a definition fails the start.
func TestCRDsErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n", `ConfigMap "a" of "v1" is not a CustomResourceDefinition`},
		{strings.Replace(crontabFile, "crontabs.stable", "cron.stable", 1), "must be spec.names.plural"},
		{"a: [", "yaml"},
	} {
		file := write(t, filepath.Join(t.TempDir(), "f.yaml"), []byte(tt.text))
		a, err := Start(t.Context(), Options{CRDs: file})
		if err == nil {
			stop(t, a)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}
