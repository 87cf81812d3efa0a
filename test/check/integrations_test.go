package check

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/postrender"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/test/program"
)

// Two objects: a server accepts one, and rejects the other.
const (
	valid   = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: b\n"
	invalid = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: b\n  c d: e\n"
)

// prepare makes a folder with files, in which anykind is in PATH, and returns the top folder of the
// repository.
func prepare(t *testing.T, files map[string]string) (top string) {
	t.Helper()
	top, err := program.Top()
	if err != nil {
		t.Fatal(err)
	}
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("PATH", filepath.Dir(anykind)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// read decodes a YAML file of the repository, and fails for unknown fields.
func read(t *testing.T, into any, path ...string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatal(err)
	}
}

// run runs a command, and returns its output and exit code.
func run(t *testing.T, env []string, name string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// An action is the metadata of a composite action of GitHub:
// https://docs.github.com/actions/reference/metadata-syntax-reference
type action struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Branding    map[string]string `json:"branding"`
	Inputs      map[string]struct {
		Description string `json:"description"`
		Default     string `json:"default"`
	} `json:"inputs"`
	Runs struct {
		Using string `json:"using"`
		Steps []struct {
			ID    string            `json:"id"`
			If    string            `json:"if"`
			Uses  string            `json:"uses"`
			With  map[string]string `json:"with"`
			Env   map[string]string `json:"env"`
			Shell string            `json:"shell"`
			Run   string            `json:"run"`
		} `json:"steps"`
	} `json:"runs"`
}

// The steps of the action run as a runner runs them: with bash, and expressions in the environment
// only, so that no input is code.
func TestAction(t *testing.T) {
	for _, tt := range []struct {
		name, paths, crds, args, output string
		code                            int
		want                            string
	}{
		{"accepted", "valid dir", "", "", "github", 0, "2 objects in 1 file: 2 accepted"},
		{"annotated", "valid dir\ninvalid.yaml\n", "", "", "github", 1, "::error file=invalid.yaml,line=7,col=3,title=ConfigMap default/a::data[c d]"},
		{"with flags", "invalid.yaml", "crds\nother", "--namespace\nprod", "text", 1, "ConfigMap prod/a"},
		{"no code", "$(echo valid.yaml)", "", "", "github", 3, "$(echo valid.yaml): no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := prepare(t, map[string]string{
				"valid dir/a.yaml": valid + "---\n" + strings.Replace(valid, "name: a", "name: b", 1), "invalid.yaml": invalid, "crds/a.yaml": "", "other/a.yaml": "",
			})
			var a action
			read(t, &a, top, "action.yml")
			for name, input := range a.Inputs {
				if strings.Contains(input.Description, "${{") {
					t.Errorf("input %s: a runner evaluates expressions in descriptions, and rejects the action", name)
				}
			}
			expressions := map[string]string{"paths": tt.paths, "crds": tt.crds, "args": tt.args, "output": tt.output, "since": ""}
			for _, s := range a.Runs.Steps {
				if strings.Contains(s.Run, "${{") || s.Run != "" && s.Shell != "bash" {
					t.Errorf("step %q: expressions belong into env, and the shell is bash", s.Run)
				}
				if s.ID != "check" {
					continue
				}
				var env []string
				for name, value := range s.Env {
					input := strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")
					if _, ok := a.Inputs[input]; !ok {
						t.Errorf("%s: %s is no input", name, value)
					}
					env = append(env, name+"="+expressions[input])
				}
				out, code := run(t, env, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
				if code != tt.code || !strings.Contains(out, tt.want) {
					t.Errorf("exit code %d, want %d\n%s", code, tt.code, out)
				}
			}
		})
	}
}

// The hooks have the fields of pre-commit (https://pre-commit.com/#new-hooks), and work as a hook of
// git.
func TestPreCommitHooks(t *testing.T) {
	top := prepare(t, map[string]string{"a.yaml": valid, "crd/broken.yaml": "a: ["})
	var hooks []struct {
		ID            string   `json:"id"`
		Name          string   `json:"name"`
		Description   string   `json:"description"`
		Language      string   `json:"language"`
		Entry         string   `json:"entry"`
		Files         string   `json:"files"`
		TypesOr       []string `json:"types_or"`
		PassFilenames *bool    `json:"pass_filenames"`
	}
	read(t, &hooks, top, ".pre-commit-hooks.yaml")
	entries := map[string]string{}
	for _, h := range hooks {
		if h.ID == "" || h.Name == "" || h.Language != "golang" || !strings.HasPrefix(h.Entry, "anykind ") {
			t.Errorf("hook %+v", h)
		}
		entries[h.ID] = h.Entry
	}
	git := func(code int, args ...string) string {
		t.Helper()
		out, got := run(t, []string{"GIT_CONFIG_GLOBAL=" + os.DevNull}, "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if got != code {
			t.Fatalf("git %v: exit code %d, want %d\n%s", args, got, code, out)
		}
		return out
	}
	git(0, "init", "-q")
	git(0, "add", ".")
	git(0, "commit", "-q", "-m", "1")
	if err := os.WriteFile(".git/hooks/pre-commit", []byte("#!/bin/sh\nexec "+entries["anykind-check"]+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("a.yaml", []byte(invalid), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := git(1, "commit", "-a", "-m", "2"); !strings.Contains(out, "a.yaml:7:3: error: ConfigMap default/a: data[c d]") || strings.Contains(out, "broken") {
		t.Error(out)
	}
	if err := os.WriteFile("a.yaml", []byte(strings.Replace(valid, "a: b", "a: c", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	git(0, "commit", "-a", "-m", "2")
	words := append(strings.Fields(entries["anykind-crd-lint"]), "crd/broken.yaml")
	if out, code := run(t, nil, words[0], words[1:]...); code != 3 || !strings.Contains(out, "crd/broken.yaml:1:") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// The published kustomize runs the function as a transformer: valid objects pass unchanged.
func TestKustomizeFunction(t *testing.T) {
	build := func(t *testing.T, object string) (string, error) {
		top := prepare(t, map[string]string{
			"a.yaml": object,
			"check.yaml": `apiVersion: anykind.dev/v1
kind: Check
metadata:
  name: check
  annotations:
    config.kubernetes.io/function: "exec: {path: ./anykind-check}"
`,
			"kustomization.yaml": "resources: [a.yaml]\ntransformers: [check.yaml]\n",
		})
		script, err := os.ReadFile(filepath.Join(top, "integrations", "kustomize", "anykind-check"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("anykind-check", script, 0o700); err != nil {
			t.Fatal(err)
		}
		o := krusty.MakeDefaultOptions()
		o.PluginConfig = types.EnabledPluginConfig(types.BploUseStaticallyLinked)
		o.PluginConfig.FnpLoadingOptions.EnableExec = true
		resources, err := krusty.MakeKustomizer(o).Run(filesys.MakeFsOnDisk(), ".")
		if err != nil {
			return "", err
		}
		text, err := resources.AsYaml()
		return string(text), err
	}
	t.Run("valid", func(t *testing.T) {
		if out, err := build(t, valid); err != nil || out != "apiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata:\n  name: a\n" {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("invalid", func(t *testing.T) {
		if out, err := build(t, invalid); err == nil || !strings.Contains(err.Error(), "exit status 1") {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("a flag", func(t *testing.T) {
		t.Setenv("ANYKIND_CHECK_FLAGS", "--pass-unknown-kinds")
		if _, err := build(t, "apiVersion: example.com/v1\nkind: A\nmetadata: {name: a}\n"); err != nil {
			t.Error(err)
		}
	})
}

// Helm's own code runs the post-renderer.
func TestHelmPostRenderer(t *testing.T) {
	top := prepare(t, nil)
	run := func(objects string, args ...string) (string, error) {
		t.Helper()
		p, err := postrender.NewExec(filepath.Join(top, "integrations", "helm", "anykind-check", "post-renderer"), args...)
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Run(bytes.NewBufferString(objects))
		if err != nil {
			return "", err
		}
		return out.String(), nil
	}
	if out, err := run("---\n# Source: shop/templates/a.yaml\n" + valid); err != nil || out != "---\n# Source: shop/templates/a.yaml\n"+valid {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := run("---\n# Source: shop/templates/a.yaml\n" + invalid); err == nil || !strings.Contains(err.Error(), "shop/templates/a.yaml: error: ConfigMap default/a: data[c d]") {
		t.Error(err)
	}
	if _, err := run("apiVersion: example.com/v1\nkind: A\nmetadata: {name: a}\n", "--pass-unknown-kinds"); err != nil {
		t.Error(err)
	}
}

// The plugin has the fields of Helm, and calls helm by HELM_BIN.
func TestHelmPlugin(t *testing.T) {
	top := prepare(t, map[string]string{"helm": "#!/bin/sh\necho \"# $*\"\ncat objects.yaml\n", "objects.yaml": "---\n# Source: shop/templates/a.yaml\n" + invalid})
	folder := filepath.Join(top, "integrations", "helm")
	var plugin struct {
		Name        string `json:"name"`
		Version     string `json:"version"`
		Usage       string `json:"usage"`
		Description string `json:"description"`
		IgnoreFlags bool   `json:"ignoreFlags"`
		Command     string `json:"command"`
	}
	read(t, &plugin, folder, "plugin.yaml")
	if plugin.Name == "" || plugin.Version == "" || plugin.IgnoreFlags {
		t.Errorf("%+v", plugin)
	}
	command := strings.Replace(plugin.Command, "$HELM_PLUGIN_DIR", folder, 1)
	env := []string{"HELM_BIN=./helm"}
	out, code := run(t, env, command, "shop", "--set", "a=b")
	if code != 1 || !strings.Contains(out, "shop/templates/a.yaml: error: ConfigMap default/a: data[c d]") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if err := os.WriteFile("objects.yaml", []byte(valid), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := run(t, env, command, "shop"); code != 0 || !strings.Contains(out, "1 accepted") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if err := os.WriteFile("helm", []byte("#!/bin/sh\necho no such chart >&2\nexit 4\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, code := run(t, env, command, "shop"); code != 4 || !strings.Contains(out, "no such chart") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// All integrations are on the page.
func TestIntegrationsAreDocumented(t *testing.T) {
	top := prepare(t, nil)
	page, err := os.ReadFile(filepath.Join(top, "docs", "check.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"action.yml", ".pre-commit-hooks.yaml", "integrations/kustomize", "integrations/helm"} {
		if !slices.Contains(strings.FieldsFunc(string(page), func(r rune) bool { return strings.ContainsRune("`()[] \n", r) }), "../"+name) {
			t.Errorf("docs/check.md has no link to %s", name)
		}
	}
}
