// Package conversions compares objects that anykind converts by rules with those of a kube-apiserver whose
// conversion webhook is anykind convert serve.
//
// Rules, schemas and objects are random. Both servers get the same writes in both versions; the objects that
// they show in each version, in gets and lists, must be equal, except for managedFields.
package conversions

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/conversion"
	"github.com/anykind/anykind/internal/schema/conversion/conversiontest"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
	"github.com/anykind/anykind/test/program"
)

var (
	reference = flag.String("reference", "", "compare with a server that is started if it is \"start\"")
	kinds     = flag.Int("kinds", 40, "number of kinds")
	objects   = flag.Int("objects", 10, "number of objects of each version of a kind")
)

const group = "example.org"

// definition returns the CustomResourceDefinition of a case.
func definition(n int, c *conversiontest.Case, annotations, conversion any) object.Tree {
	plural := fmt.Sprint("widgets", n)
	version := func(name string, schema any) object.Tree {
		return object.Tree{"name": name, "served": true, "storage": name == "v2", "schema": object.Tree{"openAPIV3Schema": schema}}
	}
	out := object.Tree{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object.Tree{"name": plural + "." + group, "annotations": annotations},
		"spec": object.Tree{
			"group": group, "scope": "Cluster", "names": object.Tree{"plural": plural, "kind": fmt.Sprint("Widget", n)},
			"versions": []any{version("v2", c.Hub), version("v1", c.Spoke)},
		},
	}
	if conversion != nil {
		out["spec"].(object.Tree)["conversion"] = conversion
	}
	return out
}

func TestConversions(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	// Stop, not the context of the test, ends the servers.
	p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{Reference: "start", Store: "memory", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	var cases []*conversiontest.Case
	file := &bytes.Buffer{}
	for n := range *kinds {
		c := conversiontest.Random(rand.New(rand.NewPCG(uint64(n), 3)), 6)
		cases = append(cases, c)
		fmt.Fprintf(file, "---\n%s\n", encoded(definition(n, c, object.Tree{conversion.Annotation: string(c.Spec())}, nil)))
	}
	hooks := serveRules(t, file.Bytes())
	accepted, refused := 0, 0
	for n, c := range cases {
		must(t, p.Theirs, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(n, c, nil, hooks[n]))
		must(t, p.Ours, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(n, c, object.Tree{conversion.Annotation: string(c.Spec())}, nil))
		s := conversion.Sampler{Rand: rand.New(rand.NewPCG(uint64(n), 4))}
		for _, version := range []string{"v1", "v2"} {
			at := fmt.Sprintf("/apis/%s/%s/widgets%d", group, version, n)
			served(t, p.Theirs, at)
			for i := range *objects {
				o := s.Object(group+"/"+version, fmt.Sprint("Widget", n), c.Schemas()[version])
				object.Metadata(o)["name"] = fmt.Sprint(version, "-", i)
				theirs, ours := send(t, p.Theirs, "POST", at, o), send(t, p.Ours, "POST", at, o)
				switch {
				case (theirs.Code == 201) != (ours.Code == 201):
					t.Errorf("create %s: %d %s, here %d %s\n%s", at, theirs.Code, theirs.Body, ours.Code, ours.Body, c.Spec())
				case theirs.Code == 201:
					accepted++
					same(t, at, theirs.Body, ours.Body, c)
				default:
					refused++
				}
			}
		}
		for _, version := range []string{"v1", "v2"} {
			at := fmt.Sprintf("/apis/%s/%s/widgets%d", group, version, n)
			theirs, ours := send(t, p.Theirs, "GET", at, nil), send(t, p.Ours, "GET", at, nil)
			if theirs.Code == 200 && ours.Code == 200 {
				same(t, at, theirs.Body, ours.Body, c)
			} else if theirs.Code != ours.Code {
				t.Errorf("list %s: %d %s, here %d %s", at, theirs.Code, theirs.Body, ours.Code, ours.Body)
			}
		}
	}
	t.Logf("%d objects accepted by both, %d refused by both", accepted, refused)
	if accepted < *kinds**objects {
		t.Errorf("only %d objects were accepted", accepted)
	}
}

// serveRules starts the webhook, and returns the conversions that its patches give to the definitions.
func serveRules(t *testing.T, definitions []byte) []any {
	t.Helper()
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "crds.yaml")
	if err := os.WriteFile(file, definitions, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), anykind, "convert", "serve", file, "--bind-address", "127.0.0.1", "--secure-port", "0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	hooks := make([]any, *kinds)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), "kubectl patch crd widgets")
		if !ok {
			return hooks
		}
		var n int
		if _, err := fmt.Sscanf(rest, "%d.", &n); err != nil {
			t.Fatal(err)
		}
		_, patch, _ := strings.Cut(rest, "-p '")
		var parsed struct{ Spec struct{ Conversion any } }
		if err := json.Unmarshal([]byte(strings.TrimSuffix(patch, "'")), &parsed); err != nil {
			t.Fatal(err)
		}
		hooks[n] = parsed.Spec.Conversion
	}
	t.Fatal("the webhook ended")
	return nil
}

func encoded(t object.Tree) string {
	data, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func send(t *testing.T, c *wire.Client, method, path string, body object.Tree) *wire.Answer {
	t.Helper()
	s := wire.Step{Method: method, Path: path}
	if body != nil {
		s.Body = []byte(encoded(body))
		s.Header = []wire.Field{{Name: "Content-Type", Value: "application/json"}}
	}
	a := c.Do(t.Context(), s)
	if a.Failed != "" {
		t.Fatalf("%s %s: %s", method, path, a.Failed)
	}
	return a
}

func must(t *testing.T, c *wire.Client, method, path string, body object.Tree) {
	t.Helper()
	if a := send(t, c, method, path, body); a.Code >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d %s\n%s", method, path, a.Code, a.Body, encoded(body))
	}
}

// served waits until a kind is served.
func served(t *testing.T, c *wire.Client, path string) {
	t.Helper()
	err := servers.Wait(t.Context(), func() bool { return send(t, c, "GET", path, nil).Code == http.StatusOK })
	if err != nil {
		t.Fatalf("%s is not served: %v", path, err)
	}
}

// same compares two objects or lists without the metadata that differs between servers.
func same(t *testing.T, at string, theirs, ours []byte, c *conversiontest.Case) {
	t.Helper()
	x, y := plain(t, theirs), plain(t, ours)
	if !object.Equal(x, y) {
		t.Errorf("%s: %s, here %s\n%s", at, encoded(x), encoded(y), c.Spec())
	}
}

func plain(t *testing.T, data []byte) object.Tree {
	t.Helper()
	var out object.Tree
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	all := []any{out}
	if items, ok := out["items"].([]any); ok {
		delete(out, "metadata")
		all = items
	}
	for _, o := range all {
		for _, field := range []string{"managedFields", "uid", "resourceVersion", "creationTimestamp"} {
			delete(object.Metadata(o.(object.Tree)), field)
		}
	}
	return out
}
