package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the reports into testdata")

// A file of testdata has two releases of Kubernetes, a tree, and the report: the sections with findings.
func TestReport(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		dirs := map[string]map[string]string{"old": {}, "new": {}}
		var files []textFile
		want := -1
		for i, f := range archive.Files {
			if rest, ok := strings.CutPrefix(f.Name, "tree/"); ok {
				files = append(files, textFile{rest, string(f.Data)})
				continue
			}
			if f.Name == "report" {
				want = i
				continue
			}
			path := filepath.Join(dir, filepath.FromSlash(f.Name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f.Data, 0o644); err != nil {
				t.Fatal(err)
			}
			parts := strings.Split(f.Name, "/")
			dirs[parts[0]]["k8s.io/"+parts[1]] = filepath.Join(dir, parts[0], parts[1])
		}
		r, err := compareReleases(newSource(dirs["old"]), newSource(dirs["new"]))
		if err != nil {
			t.Fatal(err)
		}
		sections, err := sectionsOf(newTree(files), r, "v1.37.1")
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, s := range sections {
			if len(s.findings) > 0 {
				got.WriteString(s.title + "\n")
				s.writeFindings(&got)
			}
		}
		if got.String() == string(archive.Files[want].Data) {
			continue
		}
		t.Errorf("%s: %s", name, got.String())
		if *update {
			archive.Files[want].Data = []byte(got.String())
			if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A go.mod gets the versions of the modules that follow the release, and its go line.
func TestRaise(t *testing.T) {
	const before = `module github.com/anykind/anykind/test

go 1.26.2

require (
	github.com/anykind/anykind v0.0.0
	k8s.io/api v0.37.1
	k8s.io/endpointslice v0.0.0 // indirect
	k8s.io/klog/v2 v2.140.0
	k8s.io/kube-openapi v0.0.0-20260721132016-d427ff9ee9ad
	k8s.io/kubectl v0.35.1 // indirect
	k8s.io/kubernetes v1.37.1
	k8s.io/metrics v0.37.1 // indirect
)

replace (
	github.com/anykind/anykind => ../
	k8s.io/api => k8s.io/api v0.37.1
	k8s.io/kubectl => k8s.io/kubectl v0.37.1
)
`
	mod, err := modfile.Parse("go.mod", []byte(before), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !isOurs(mod) {
		t.Error("the module is not ours")
	}
	follow := map[string]bool{}
	followers(follow, mod, "v1.37.1")
	to := map[string]string{}
	for m := range follow {
		to[m] = "v1.38.0-alpha.2"
	}
	to["k8s.io/metrics"] = "v1.38.0-alpha.0" // not published with alpha.2
	n, err := raise(mod, "v1.37.1", to, "1.27.0")
	if err != nil || n != 6 {
		t.Errorf("%d lines, %v", n, err)
	}
	if err := requireOthers(mod, "k8s.io/kube-openapi@v0.0.0-20261014044854-ca3452a79603,k8s.io/unknown@v1.0.0"); err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"go 1.26.2", "go 1.27.0", "k8s.io/metrics v0.37.1", "k8s.io/metrics v0.38.0-alpha.0", "k8s.io/kubernetes v1.37.1", "k8s.io/kubernetes v1.38.0-alpha.2",
		"v0.37.1", "v0.38.0-alpha.2", "v0.0.0-20260721132016-d427ff9ee9ad", "v0.0.0-20261014044854-ca3452a79603",
	).Replace(before)
	if got := string(modfileText(goMod{"go.mod", mod})); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := releaseOf(mod); got != "" {
		t.Errorf("a release %s without apimachinery", got)
	}
}

// A module that builds published programs keeps its versions.
func TestOthersKeepTheirVersions(t *testing.T) {
	mod, err := modfile.Parse("go.mod", []byte("module github.com/anykind/anykind/test/operators/programs\n\nrequire k8s.io/api v0.37.1 // indirect\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if isOurs(mod) {
		t.Error("the module is ours")
	}
}

func TestCheckRelease(t *testing.T) {
	for text, valid := range map[string]bool{
		"v1.38.0": true, "v1.38.0-alpha.2": true, "v1.38.0-rc.0": true, "v1.38": false, "1.38.0": false, "v0.38.0": false, "": false, "v1.X.Y": false,
	} {
		if err := checkRelease(text); (err == nil) != valid {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The version of the server and the names on pages follow.
func TestSetVersion(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		versionFile:        "const (\n\tMajor = \"1\"\n\tMinor = \"37\"\n\tPatch = \"1\" // with a pre-release\n)\n",
		releaseFile:        "// Current is\nconst Current Release = 37\nconst Oldest = Current - 3\n",
		"README.md":        "every kind of Kubernetes v1.37\nanykind (devel), Kubernetes 1.37, listens\n",
		"docs/features.md": "kube-apiserver v1.37.",
		"docs/kits.md":     "Kubernetes 1.37, v11.37, 11.37",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b := bump{source: dir, from: "v1.37.1", to: "v1.38.0-alpha.2"}
	if err := b.setVersion(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		versionFile:        "const (\n\tMajor = \"1\"\n\tMinor = \"38\"\n\tPatch = \"0-alpha.2\" // with a pre-release\n)\n",
		releaseFile:        "// Current is\nconst Current Release = 38\nconst Oldest = Current - 3\n",
		"README.md":        "every kind of Kubernetes v1.38\nanykind (devel), Kubernetes 1.38, listens\n",
		"docs/features.md": "kube-apiserver v1.38.",
		"docs/kits.md":     "Kubernetes 1.38, v11.37, 11.37",
	} {
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}
