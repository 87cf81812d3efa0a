package main

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// A finding is a change of Kubernetes, with its places in our tree.
type finding struct {
	change
	name   string
	places []place
	words  []string // of a row
}

// A section of the report.
type section struct {
	title, note string
	findings    []finding
}

// A mapper finds the places of changes.
type mapper struct {
	tree *tree
	rows map[string]*table
}

// section returns the changes of a kind of facts with their places.
func (m mapper) section(title, note string, old, new facts, places func(change) []place) section {
	s := section{title: title, note: note}
	for _, c := range compare(old, new) {
		f := finding{change: c, name: c.name}
		if places != nil {
			f.places = places(c)
		}
		s.findings = append(s.findings, f)
	}
	return s
}

const (
	gatesFile   = "internal/object/gate/gates.txt"
	idleFile    = "internal/object/gate/idle.txt"
	flagsFile   = "internal/app/flags/kubeflags.txt"
	metricsFile = "internal/server/stability.txt"
	pluginsFile = "internal/admission/plugins.go"
	versionFile = "internal/object/kubernetes/version.go"
	releaseFile = "internal/object/gate/release.go"
	rolesFolder = "internal/access/authz/rbac/defaults"
	// versionsFile has the versions of all groups, of which published models list some types.
	versionsFile = "internal/object/groupversion/groupversion.go"
)

// gate returns the places that name a gate, or the list in which a new one has to stand.
func (m mapper) gate(c change) []place {
	work := map[string]string{"-": "names a removed gate", "~": "names it: check"}[c.sign()]
	places := m.tree.named(c.name, work)
	switch {
	case c.new != nil && isLocked(*c.new):
		for i := range places {
			places[i].work = "names a locked gate: nothing can change it"
		}
	case c.new != nil && len(places) == 0:
		return []place{{file: idleFile, work: "a line with the reason, or a constant in internal/object/gate/names.go and a line in docs/gates.md"}}
	}
	return places
}

// named returns a function for facts whose name stands in a list.
func (m mapper) named(list string) func(change) []place {
	return func(c change) []place {
		var places []place
		for _, p := range m.tree.named(c.name, "names it") {
			if strings.HasPrefix(p.file, "internal/") || strings.HasPrefix(p.file, "docs/") || strings.HasPrefix(p.file, "cmd/") {
				places = append(places, p)
			}
		}
		if c.old == nil && !slices.ContainsFunc(places, func(p place) bool { return p.file == list }) {
			places = append(places, place{file: list, work: "a line"})
		}
		return places
	}
}

// role returns the line of a default role, or the file for a new one.
func (m mapper) role(c change) []place {
	kind, name, _ := strings.Cut(c.name, " ")
	name, _, _ = strings.Cut(name, " ")
	file := map[string]string{
		"ClusterRole": "clusterroles.txt", "ClusterRoleBinding": "clusterrolebindings.txt", "Role": "roles.txt", "RoleBinding": "rolebindings.txt",
	}[kind]
	if strings.Contains(c.name, "controller:") {
		file = "controllers.txt"
	}
	at := place{file: rolesFolder + "/" + file, work: "its rules"}
	data, _ := m.tree.file(at.file)
	n := 0
	for line := range strings.Lines(data) {
		n++
		first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if first == name || first == strings.TrimPrefix(name, "system:controller:") {
			at.line = n
			break
		}
	}
	return []place{at}
}

// field returns the row of a type or field.
func (m mapper) field(c change) []place {
	pkg, name, _ := strings.Cut(c.name, " ")
	if m.rows[pkg] == nil {
		return nil
	}
	if r, ok := find(m.rows, pkg, name); ok {
		return []place{{r.file, r.line, strings.Join(r.words, " ")}}
	}
	return nil
}

// kind returns the folder of the group of a kind, a version or a resource.
func (m mapper) kind(c change) (out []place) {
	group, rest, _ := strings.Cut(c.name, "/")
	version, _, _ := strings.Cut(rest, " ")
	if line, ok := m.versionsOf(group); ok && c.sign() == "+" && !slices.Contains(strings.Fields(line.work), version) {
		line.work += ": add " + version
		out = append(out, line)
	}
	if folder := m.folder("k8s.io/kubernetes/pkg/apis/" + group); folder != "" {
		return append(out, place{file: folder, work: "a kind, a version or a resource"})
	}
	return append(out, place{file: "internal/builtin/builtin.go", work: "a group without a folder"})
}

// versionsOf returns the line with the versions of a group. The folder of a group has the first part of its name.
func (m mapper) versionsOf(group string) (place, bool) {
	text, _ := m.tree.file(versionsFile)
	n := 0
	for line := range strings.Lines(text) {
		n++
		name, _, _ := strings.Cut(line, ": ")
		if first, _, _ := strings.Cut(strings.TrimPrefix(name, "const groupVersions = `"), "."); first == group {
			return place{versionsFile, n, strings.TrimSpace(line)}, true
		}
	}
	return place{}, false
}

// required returns the line of our go.mod, or our imports of a module that is no longer required.
func (m mapper) required(c change) (out []place) {
	if c.sign() == "-" {
		for _, p := range m.tree.with(`"`+c.name+"/", "imports it") {
			if strings.HasSuffix(p.file, ".go") {
				out = append(out, p)
			}
		}
		const dependencies = "docs/decisions/0002-direct-dependencies.md"
		if text, _ := m.tree.file(dependencies); len(out) > 0 && strings.Contains(text, c.name) {
			out = append(out, place{file: dependencies, work: "has it; make tidy, once no file imports it"})
		}
		return out
	}
	data, _ := m.tree.file("go.mod")
	n := 0
	for line := range strings.Lines(data) {
		n++
		if strings.HasPrefix(line, "\t"+c.name+" ") && !strings.Contains(line, "// indirect") {
			return []place{{"go.mod", n, strings.TrimSpace(line)}}
		}
	}
	return nil
}

// overload returns the test that calls each function of CEL.
func (m mapper) overload(c change) []place {
	const calls = "internal/schema/celrule/testdata/library.yaml"
	if c.sign() == "+" {
		return []place{{file: calls, work: "a call"}}
	}
	return m.tree.named(c.name, "names it")
}

// plugin returns the list of plugins.
func (m mapper) plugin(change) []place {
	return []place{{file: pluginsFile, work: "the list of plugins"}}
}

// message returns our code with the text of an error that has gone.
func (m mapper) message(c change) (out []place) {
	if c.new != nil {
		return nil
	}
	for _, p := range m.tree.with(c.name, "has the text") {
		if strings.HasPrefix(p.file, "internal/") {
			out = append(out, p)
		}
	}
	return out
}

// folders has our folder for packages of Kubernetes. The first that fits counts.
func folders() [][2]string {
	return [][2]string{
		{"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node", "internal/access/authz/node"},
		{"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac", "internal/access/authz/rbac"},
		{"k8s.io/kubernetes/pkg/kubeapiserver/options", "internal/app/flags"},
		{"k8s.io/kubernetes/pkg/kubeapiserver", "internal/app"},
		{"k8s.io/kubernetes/pkg/controlplane/controller", "internal/controller"},
		{"k8s.io/kubernetes/pkg/controlplane", "internal/app"},
		{"k8s.io/kubernetes/pkg/serviceaccount", "internal/access/authn"},
		{"k8s.io/kubernetes/pkg/quota", "internal/builtin/usage"},
		{"k8s.io/kubernetes/pkg/printers", "internal/builtin"},
		{"k8s.io/kubernetes/pkg/api", "internal/builtin"},
		{"k8s.io/kubernetes/pkg/registry", "internal/builtin"},
		{"k8s.io/kubernetes/plugin/pkg/admission", "internal/admission"},
		{"k8s.io/kubernetes/pkg/kubelet/client", "internal/network/kubelet"},
		{"k8s.io/pod-security-admission", "internal/admission/podsecurity"},
		{"k8s.io/dynamic-resource-allocation", "internal/builtin/dra"},
		{"k8s.io/apiextensions-apiserver", "internal/schema/crd"},
		{"k8s.io/kube-aggregator", "internal/server/aggregate"},
		{"k8s.io/apiserver/pkg/endpoints/openapi", "internal/server/openapi"},
		{"k8s.io/apiserver/pkg/endpoints/discovery", "internal/server/discovery"},
		{"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager", "internal/registry/apply"},
		{"k8s.io/apiserver/pkg/endpoints/handlers", "internal/server/rest"},
		{"k8s.io/apiserver/pkg/endpoints/request", "internal/object/request"},
		{"k8s.io/apiserver/pkg/endpoints", "internal/server"},
		{"k8s.io/apiserver/pkg/server/options", "internal/app/flags"},
		{"k8s.io/apiserver/pkg/server", "internal/server"},
		{"k8s.io/apiserver/pkg/storage/value", "internal/store/encrypt"},
		{"k8s.io/apiserver/pkg/storage", "internal/store"},
		{"k8s.io/apiserver/pkg/registry", "internal/registry"},
		{"k8s.io/apiserver/pkg/admission/plugin/policy", "internal/admission/policy"},
		{"k8s.io/apiserver/pkg/admission/plugin/webhook", "internal/admission/webhook"},
		{"k8s.io/apiserver/pkg/admission/plugin/resourcequota", "internal/admission/quota"},
		{"k8s.io/apiserver/pkg/admission", "internal/admission"},
		{"k8s.io/apiserver/pkg/audit", "internal/access/audit"},
		{"k8s.io/apiserver/pkg/authentication", "internal/access/authn"},
		{"k8s.io/apiserver/plugin/pkg/authenticator", "internal/access/authn"},
		{"k8s.io/apiserver/pkg/authorization", "internal/access/authz"},
		{"k8s.io/apiserver/plugin/pkg/authorizer", "internal/access/authz"},
		{"k8s.io/apiserver/pkg/util/flowcontrol", "internal/access/fairness"},
		{"k8s.io/apiserver/pkg/cel/library", "internal/schema/celrule"},
		{"k8s.io/apiserver/pkg/cel", "internal/schema/celprogram"},
		{"k8s.io/apimachinery/pkg/api/validate", "internal/builtin/rule"},
		{"k8s.io/apimachinery/pkg/api/validation", "internal/registry"},
		{"k8s.io/apimachinery", "internal/object"},
	}
}

// folder returns our folder for a package of Kubernetes, "" for none.
func (m mapper) folder(importPath string) string {
	for _, part := range strings.Split(strings.TrimPrefix(importPath, "k8s.io/kubernetes/"), "/") {
		for _, wing := range []string{"internal/builtin/", "internal/admission/"} {
			builtin := strings.Contains(importPath, "/apis/") || strings.Contains(importPath, "/pkg/registry/")
			if builtin == (wing == "internal/builtin/") && strings.HasPrefix(importPath, "k8s.io/kubernetes/") {
				name := map[string]string{"resource": "dra"}[part]
				if folder := wing + cmp.Or(name, part); m.tree.has(folder) {
					return folder
				}
			}
		}
	}
	for _, f := range folders() {
		if importPath == f[0] || strings.HasPrefix(importPath, f[0]+"/") {
			return f[1]
		}
	}
	return ""
}

// A record is a file of facts, with the command that writes it. Without one, its lines are work by hand.
type record struct{ file, command string }

// records returns the recorded facts of a release, in the order of work.
func records() []record {
	return []record{
		{gatesFile, "written by make bump; go -C test test ./builtin -run TestGates compares it with the running code"},
		{tables, "the section about tables has the rows; go test ./internal/builtin/..."},
		{"internal/schema/model/docs_test.go", "documentation of types: go test ./internal/schema/model -docs"},
		{"internal/builtin/testdata/recorded", "go -C test test ./publish -run TestRecording -reference start -update; go test ./internal/app -run TestPublished -shrink"},
		{"internal/server/openapi/testdata", "go test ./internal/server/openapi -update"},
		{rolesFolder, "the section about roles; go -C test test ./builtin -run RBAC"},
		{flagsFile, "the section about flags"},
		{metricsFile, "the section about metrics"},
		{"internal/app/testdata/readyz.txt", "the names of health checks, by hand"},
		{"test/builtin/known.txt", "go -C test test ./builtin -run Mutations"},
		{"test/builtin/gates.txt", "go -C test test ./builtin -run TestScanGates -scan"},
		{"test/egress/testdata", "go -C test/egress test . -reference -update"},
		{"test/traces/testdata", "go -C test test ./traces -run TestSpans -reference -update"},
		{"test/kubernetes/integration/known.txt", "make integration"},
		{"test/upstream/known.txt", "make upstream ARGS=-reference"},
		{"docs/session.svg", "go -C test test ./session -update"},
	}
}

// byPackage groups changed functions by package: a finding for each, with our folder.
func (m mapper) byPackage(title, note string, old, new facts) section {
	s := section{title: title, note: note}
	index := map[string]int{}
	for _, c := range compare(old, new) {
		importPath, name, _ := strings.Cut(c.name, " ")
		i, known := index[importPath]
		if !known {
			i = len(s.findings)
			index[importPath] = i
			s.findings = append(s.findings, finding{name: importPath, change: change{old: &fact{}, new: &fact{at: path.Dir(c.at()), code: true}}})
			if folder := m.folder(importPath); folder != "" {
				s.findings[i].places = []place{{file: folder, work: "has the counterpart"}}
			}
		}
		s.findings[i].new.parts = append(s.findings[i].new.parts, c.sign()+name+counts(c))
	}
	return s
}
