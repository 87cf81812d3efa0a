package rules

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// references are the packages with which anykind is compared. Bans apply to direct imports; these
// packages must not be linked through any dependency either.
func references() []ban {
	const why = "it is what anykind is compared with: do without who imports it"
	return []ban{
		{path: "k8s.io/apiserver/pkg/server", why: why},
		{path: "k8s.io/apiserver/pkg/registry", why: why},
		{path: "k8s.io/apiserver/pkg/endpoints", why: why},
		{path: "k8s.io/apiserver/pkg/storage", why: why},
		{path: "k8s.io/apiextensions-apiserver/pkg", except: []string{"k8s.io/apiextensions-apiserver/pkg/apis"}, why: why},
		{path: "k8s.io/kube-aggregator", except: []string{"k8s.io/kube-aggregator/pkg/apis"}, why: why},
		{path: "k8s.io/kubernetes", why: why},
	}
}

// The program does not link the reference, with all transitive imports.
func TestProgramDoesNotLinkTheReference(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./cmd/anykind", ".")
	list.Dir = top
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list, err)
	}
	importers := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		names := strings.Fields(line)
		for _, imported := range names[1:] {
			importers[imported] = append(importers[imported], names[0])
		}
	}
	if !slices.Contains(importers[module+"/internal/app"], module) {
		t.Fatalf("the list of %d packages does not say who imports internal/app", len(importers))
	}
	for imported, by := range importers {
		for _, b := range references() {
			if b.forbids(imported) {
				t.Errorf("the program links %s, which is imported by %s: %s", imported, strings.Join(by, ", "), b.why)
			}
		}
	}
}
