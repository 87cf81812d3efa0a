package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// published returns the source of the release that the tree has. The modules are in the module cache, since the tests
// of test/builtin compile them.
func published(t *testing.T) *source {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-m", "-json"}, sourceModules()...)...)
	list.Dir = filepath.Join("..", "..", "test")
	list.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off")
	out, err := list.Output()
	if err != nil {
		t.Skipf("the modules are not in the module cache: %v", err)
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var m struct {
			Path, Dir string
			Replace   *struct{ Dir string }
		}
		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}
		if m.Replace != nil {
			m.Dir = m.Replace.Dir
		}
		if m.Dir == "" {
			t.Skipf("%s is not in the module cache", m.Path)
		}
		dirs[m.Path] = m.Dir
	}
	return newSource(dirs)
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// firstWords returns the first word of each line of a file.
func firstWords(t *testing.T, name string) (out []string) {
	t.Helper()
	for line := range strings.Lines(read(t, name)) {
		if words := strings.Fields(line); len(words) > 0 {
			out = append(out, words[0])
		}
	}
	return out
}

// The facts in the source are those that tests record from the running code of the same release.
func TestFactsOfTheRelease(t *testing.T) {
	s := published(t)
	gates, err := readGates(s)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := gatesText(gates), read(t, gatesFile); got != want {
		t.Errorf("gates differ:\nlacks %q\nhas %q", without(strings.Split(want, "\n"), strings.Split(got, "\n")), without(strings.Split(got, "\n"), strings.Split(want, "\n")))
	}
	flags, err := readFlags(s)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := readMetrics(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		found facts
		list  []string
		// unknown are names that code computes.
		unknown int
	}{
		{"flags", flags, firstWords(t, flagsFile), 0},
		{"metrics", metrics, firstWords(t, metricsFile), 7},
	} {
		var lacks []string
		for _, name := range tt.list {
			if _, ok := tt.found[name]; !ok {
				lacks = append(lacks, name)
			}
		}
		if len(lacks) > tt.unknown {
			t.Errorf("%d of %d %s are not found: %q", len(lacks), len(tt.list), tt.name, lacks)
		}
	}
	roles, err := readRoles(s)
	if err != nil || len(roles) < 100 {
		t.Errorf("%d roles, %v", len(roles), err)
	}
	plugins, err := readPlugins(s)
	if err != nil || len(plugins) < 30 {
		t.Errorf("%d plugins, %v", len(plugins), err)
	}
	served, err := readServed(s)
	if err != nil || served["apps/v1 deployments/status"].parts == nil || served["apps/v1"].parts == nil || served["scheduling/v1alpha3"].parts == nil {
		t.Errorf("%q, %v", served.names(), err)
	}
	types, err := readTypes(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := types.fields["core/v1 Container.ports"].parts; !slices.Contains(got, "listType=map") || !slices.Contains(got, "optional") {
		t.Errorf("ports: %q", got)
	}
	if got := types.enums["core/v1 Protocol"].parts; !slices.Equal(got, []string{`"SCTP"`, `"TCP"`, `"UDP"`}) {
		t.Errorf("protocols: %q", got)
	}
}

// The report names files of this tree.
func TestPlacesExist(t *testing.T) {
	tree, err := readTree(context.Background(), filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders() {
		if !tree.has(f[1]) {
			t.Errorf("there is no %s, for %s", f[1], f[0])
		}
	}
	for _, r := range records() {
		if _, ok := tree.file(r.file); !ok && !tree.has(r.file) {
			t.Errorf("there is no %s", r.file)
		}
	}
	for _, name := range append(pages(), idleFile, pluginsFile, versionFile) {
		if _, ok := tree.file(name); !ok {
			t.Errorf("there is no %s", name)
		}
	}
	if len(readTables(tree)) < 30 {
		t.Error("there are no tables")
	}
}
