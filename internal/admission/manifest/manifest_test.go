package manifest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/admission/manifest"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// folder returns a Folder of ValidatingWebhookConfigurations with some files.
func folder(t *testing.T, log *slog.Logger, files map[string]string) *manifest.Folder {
	t.Helper()
	f := &manifest.Folder{
		Path: t.TempDir(), Plugin: "ValidatingAdmissionWebhook", Metrics: manifest.NewMetrics("server"), Log: log,
		Kinds: []*resource.Definition{resource.NewSet(builtin.Definitions()).Lookup("admissionregistration.k8s.io", "validatingwebhookconfigurations")},
		Check: func(object.Tree, string) error { return nil },
	}
	for name, content := range files {
		place(t, f, name, content)
	}
	return f
}

func place(t *testing.T, f *manifest.Folder, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.Path, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// hook returns a configuration of that name.
func hook(name string) string {
	return fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":%q},"webhooks":[
		{"name":"a.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","clientConfig":{"url":"https://a"}}]}`, name)
}

func names(objects []object.Tree) (all []string) {
	for _, t := range objects {
		all = append(all, object.Name(t))
	}
	return all
}

// Load reads the right files. Objects are sorted by name and have defaults.
func TestLoad(t *testing.T) {
	list := `{"apiVersion":"v1","kind":"List","items":[` + hook("c.static.k8s.io") + `]}`
	tests := []struct {
		name  string
		files map[string]string
		want  []string
		err   string
	}{
		{name: "no files"},
		{name: "every ending", files: map[string]string{"1.yaml": hook("c.static.k8s.io"), "2.yml": hook("b.static.k8s.io"), "3.JSON": hook("a.static.k8s.io"), "4.txt": "not read", "5.json": ""},
			want: []string{"a.static.k8s.io", "b.static.k8s.io", "c.static.k8s.io"}},
		{name: "documents of a file", files: map[string]string{"1.yaml": "---\n" + hook("b.static.k8s.io") + "\n---\n\n---\n" + hook("a.static.k8s.io") + "\n"}, want: []string{"a.static.k8s.io", "b.static.k8s.io"}},
		{name: "a list", files: map[string]string{"1.yaml": list}, want: []string{"c.static.k8s.io"}},
		{name: "a list of the kind, whose items need not say it", files: map[string]string{"1.yaml": `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfigurationList","items":[{"metadata":{"name":"d.static.k8s.io"}}]}`},
			want: []string{"d.static.k8s.io"}},
		{name: "a name of the API", files: map[string]string{"1.yaml": hook("a")}, err: `error loading DIR/1.yaml: "a" in file "DIR/1.yaml" must have a name ending with ".static.k8s.io"`},
		{name: "a name that is none", files: map[string]string{"1.yaml": hook("A.static.k8s.io")}, err: `error loading DIR/1.yaml: ValidatingWebhookConfiguration "A.static.k8s.io": metadata.name: Invalid value: "A.static.k8s.io": `},
		{name: "two of a name", files: map[string]string{"1.yaml": hook("a.static.k8s.io"), "2.yaml": hook("a.static.k8s.io")}, err: `error loading DIR/2.yaml: duplicate name "a.static.k8s.io" found in file "DIR/2.yaml" (previously seen in "DIR/1.yaml")`},
		{name: "another kind", files: map[string]string{"1.yaml": `{"apiVersion":"v1","kind":"ConfigMap"}`}, err: `error loading DIR/1.yaml: no kind "ConfigMap" is registered for version "v1"`},
		{name: "another kind in a list", files: map[string]string{"1.yaml": `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap"}]}`}, err: `error loading DIR/1.yaml: failed to decode list item: no kind "ConfigMap" is registered for version "v1"`},
		{name: "a kind of the other plugin", files: map[string]string{"1.yaml": strings.Replace(hook("a.static.k8s.io"), "Validating", "Mutating", 1)}, err: `error loading DIR/1.yaml: unsupported resource type *v1.MutatingWebhookConfiguration`},
		{name: "an unknown field", files: map[string]string{"1.yaml": strings.Replace(hook("a.static.k8s.io"), "webhooks", "hooks", 1)}, err: `error loading DIR/1.yaml: strict decoding error: unknown field "hooks"`},
		{name: "a field twice", files: map[string]string{"1.yaml": strings.Replace(hook("a.static.k8s.io"), `"kind"`, `"webhooks":[],"kind"`, 1)}, err: `error loading DIR/1.yaml: strict decoding error: duplicate field "webhooks"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := folder(t, slog.New(slog.DiscardHandler), test.files)
			var objects []object.Tree
			f.Replace = func(all []object.Tree) error { objects = all; return nil }
			err := f.Load()
			want := strings.ReplaceAll(test.err, "DIR", f.Path)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
				t.Fatalf("%v\nwant %s", err, want)
			}
			if got := names(objects); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
			for _, o := range objects {
				webhooks, _ := o["webhooks"].([]any)
				for _, w := range webhooks {
					if got := w.(object.Tree)["failurePolicy"]; got != "Fail" {
						t.Errorf("%s: failurePolicy is %v, without its default", object.Name(o), got)
					}
				}
			}
		})
	}
}

// A change of a file is applied once. An error is logged and counted once, and changes nothing.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		f := folder(t, slog.New(slog.NewTextHandler(&log, nil)), map[string]string{"1.yaml": hook("a.static.k8s.io")})
		var applied [][]string
		f.Replace = func(objects []object.Tree) error {
			if slices.Contains(names(objects), "bad.static.k8s.io") {
				return errors.New("this manifest is invalid")
			}
			applied = append(applied, names(objects))
			return nil
		}
		if err := f.Load(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Follow(ctx)
		}()
		soon := func() { time.Sleep(10 * time.Second); synctest.Wait() }
		soon()
		place(t, f, "2.yaml", hook("b.static.k8s.io"))
		soon()
		place(t, f, "2.yaml", hook("b"))
		soon()
		place(t, f, "2.yaml", hook("bad.static.k8s.io"))
		soon()
		place(t, f, "2.yaml", "")
		soon()
		cancel()
		<-done
		want := [][]string{{"a.static.k8s.io"}, {"a.static.k8s.io", "b.static.k8s.io"}, {"a.static.k8s.io"}}
		if !slices.EqualFunc(applied, want, slices.Equal[[]string]) {
			t.Errorf("%q, want %q", applied, want)
		}
		for words, times := range map[string]int{"were not loaded": 2, "must have a name ending with": 1, "this manifest is invalid": 1, "reloaded admission manifest config": 2} {
			if got := strings.Count(log.String(), words); got != times {
				t.Errorf("%q is said %d times, not %d:\n%s", words, got, times, log.String())
			}
		}
		if counted, want := reloads(t, f.Metrics), map[string]float64{"success": 3, "failure": 2}; !maps.Equal(counted, want) {
			t.Errorf("counted %v, not %v", counted, want)
		}
	})
}

// reloads returns the number of loads by status.
func reloads(t *testing.T, m *manifest.Metrics) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		if !strings.HasSuffix(family.GetName(), "_automatic_reloads_total") {
			continue
		}
		for _, metric := range family.Metric {
			for _, label := range metric.Label {
				if label.GetName() == "status" {
					counted[label.GetValue()] = metric.Counter.GetValue()
				}
			}
		}
	}
	return counted
}
