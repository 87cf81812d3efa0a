// Package admission sends the requests of the files in cases to a kube-apiserver and to anykind, with
// the same admission plugins, and compares the responses: codes, errors, warnings, and the objects.
//
// Each folder in cases is about one plugin, and a file in it has cases: sequences of requests, each in
// a namespace of its own with a ServiceAccount "default". Files with an equal `start` share the
// servers. See file and step for the format.
package admission

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

var (
	reference = flag.String("reference", "", "compare with a server that is started if it is \"start\"")
	without   = flag.String("without", "", "disable these plugins, separated by commas, at both servers")
)

// controllers disables the controllers of anykind that kube-apiserver leaves to
// kube-controller-manager.
const controllers = "--controllers=*,-garbage-collector-controller,-namespace-controller,-serviceaccount-controller,-root-ca-certificate-publisher-controller,-resourcequota-controller"

// A file has cases, and the configuration of the servers for them.
type file struct {
	Start start
	Cases []testCase

	path string
}

// A start is the configuration of both servers, in addition to the default plugins.
type start struct {
	Enable, Disable []string        // plugins
	Configuration   json.RawMessage // an AdmissionConfiguration
	Flags           []string
	Theirs          []string // flags of kube-apiserver only, such as feature gates
}

// A testCase is a sequence of requests.
type testCase struct {
	Name string
	// Bare suppresses the creation of the namespace; the case only has its name.
	Bare  bool
	Steps []step
}

// A step is a request, such as "POST /api/v1/namespaces/NS/pods?dryRun=All". NS is the namespace of
// the case; <uid:PATH> and <rv:PATH> are the uid and the resourceVersion of an object.
type step struct {
	Do     string
	As     string   // user to impersonate
	Groups []string // groups of that user
	Media  string   // of the body; if empty, JSON, or for PATCH a merge patch
	Body   any
	// Each has merge patches of Body. Each of them gives one request.
	Each []any
	// Until is a status code, or a text in the response or its warnings. Each server gets the request
	// again until its response has it: the caches of a kube-apiserver lag behind a write.
	Until string
	// Ignore lists fields, such as "metadata.labels", that are not compared.
	Ignore []string
	// Setup marks a preparatory request, whose responses are not compared.
	Setup bool
}

func TestAdmission(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	byStart := map[string][]*file{}
	for _, f := range read(t) {
		data, err := json.Marshal(f.Start)
		if err != nil {
			t.Fatal(err)
		}
		byStart[string(data)] = append(byStart[string(data)], f)
	}
	for i, how := range slices.Sorted(maps.Keys(byStart)) {
		files := byStart[how]
		run := startOnce(t, files[0].Start)
		for j, f := range files {
			t.Run(f.path, func(t *testing.T) {
				for k, c := range f.Cases {
					t.Run(c.Name, func(t *testing.T) { c.run(t, run(t), fmt.Sprintf("case-%d-%d-%d", i, j, k)) })
				}
			})
		}
	}
}

// read reads all files. It fails for an unknown field.
func read(t *testing.T) (all []*file) {
	t.Helper()
	paths, err := filepath.Glob("cases/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := &file{path: strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(path), "cases/"), ".yaml")}
		if err := yaml.UnmarshalStrict(data, f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, f)
	}
	return all
}

// startOnce returns a function that starts both servers at its first call, and stops them with t.
func startOnce(t *testing.T, s start) func(*testing.T) *servers.Pair {
	var pair *servers.Pair
	return func(now *testing.T) *servers.Pair {
		now.Helper()
		if pair != nil {
			return pair
		}
		dir := t.TempDir()
		flags := slices.Clone(s.Flags)
		if len(s.Enable) > 0 {
			flags = append(flags, "--enable-admission-plugins="+strings.Join(s.Enable, ","))
		}
		if disable := strings.Trim(strings.Join(s.Disable, ",")+","+*without, ","); disable != "" {
			flags = append(flags, "--disable-admission-plugins="+disable)
		}
		if s.Configuration != nil {
			path := filepath.Join(dir, "admission.yaml")
			if err := os.WriteFile(path, s.Configuration, 0o600); err != nil {
				now.Fatal(err)
			}
			flags = append(flags, "--admission-control-config-file="+path)
		}
		// Stop, not the context of the test, ends the servers.
		p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{
			Reference: "start", Store: "memory", Dir: dir, Theirs: append(slices.Clone(flags), s.Theirs...), Ours: append(slices.Clone(flags), controllers),
		})
		if err != nil {
			now.Fatal(err)
		}
		t.Cleanup(p.Stop)
		pair = p
		return p
	}
}

func (c testCase) run(t *testing.T, p *servers.Pair, namespace string) {
	sides := []*side{newSide(p.Theirs, namespace), newSide(p.Ours, namespace)}
	steps := c.Steps
	if !c.Bare {
		steps = append([]step{
			{Do: "POST /api/v1/namespaces", Setup: true, Body: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "NS"}}},
			{Do: "POST /api/v1/namespaces/NS/serviceaccounts", Setup: true, Body: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default"}}},
		}, steps...)
	}
	for i, s := range steps {
		for j, body := range s.bodies() {
			theirs, ours := sides[0].ask(t, s, body), sides[1].ask(t, s, body)
			if s.Setup {
				if theirs.Code/100 != 2 || ours.Code/100 != 2 {
					t.Fatalf("step %d, %s: %d and %d\n%s\n%s", i-len(steps)+len(c.Steps)+1, s.Do, theirs.Code, ours.Code, theirs.Body, ours.Body)
				}
				continue
			}
			for _, d := range judge.Compare(sides[0].normal(theirs, s), sides[1].normal(ours, s)) {
				t.Errorf("step %d.%d, %s: %s\n\tKubernetes %s\n\tanykind    %s", i-len(steps)+len(c.Steps)+1, j+1, s.Do, d.Place, d.Theirs, d.Ours)
			}
			if testing.Verbose() {
				t.Logf("step %d.%d, %s: %d %s", i-len(steps)+len(c.Steps)+1, j+1, s.Do, theirs.Code, said(theirs))
			}
		}
	}
}

// said returns the response without the object.
func said(a *wire.Answer) string {
	var status struct{ Kind, Message string }
	_ = json.Unmarshal(a.Body, &status) // other bodies leave it empty
	all := a.Header["Warning"]
	if status.Kind == "Status" {
		all = append([]string{status.Message}, all...)
	}
	return strings.Join(all, "\n\t")
}

// bodies returns the body of each request of a step.
func (s step) bodies() []any {
	if s.Each == nil {
		return []any{s.Body}
	}
	var all []any
	for _, patch := range s.Each {
		all = append(all, merged(s.Body, patch))
	}
	return all
}

// merged returns a value after a merge patch.
func merged(value, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if v, ok := value.(map[string]any); ok {
		maps.Copy(out, v)
	}
	for name, field := range p {
		if out[name] = merged(out[name], field); field == nil {
			delete(out, name)
		}
	}
	return out
}
