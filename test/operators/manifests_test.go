package operators

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/test/program"
)

// sample are the projects of a short run.
var sample = []string{"cert-manager", "gatekeeper", "kwok"}

// tooLarge is the error for kubectl's last-applied annotation on a large object. Projects with such
// definitions recommend server-side apply.
const tooLarge = "metadata.annotations: Too long"

// The manifests of projects are accepted by client-side and by server-side apply, as by
// kube-apiserver.
func TestManifests(t *testing.T) {
	modules, err := program.Published("test/operators/published")
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*Project{}
	for _, p := range Projects {
		byName[p.Name] = p
	}
	programs := []string{ours(t)}
	if *reference {
		programs = append(programs, theirs(t))
	}
	rows := map[string][]string{}
	for _, p := range Projects {
		if !*all && !slices.Contains(sample, p.Name) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			documents, err := p.Documents(modules, kubectl(t))
			if err != nil {
				t.Fatal(err)
			}
			row := []string{p.Name, modules[p.Module].Version, fmt.Sprint(len(documents))}
			for _, flags := range [][]string{nil, {"--server-side"}} {
				var answers []*Applied
				for _, folder := range programs {
					c := cluster(t, folder)
					for _, needed := range p.Needs {
						needDefinitions(t, c, byName[needed], modules)
					}
					a, err := c.Apply(t.Context(), p.Name, p.Namespace, documents, flags...)
					if err != nil {
						t.Fatal(err)
					}
					answers = append(answers, a)
				}
				if len(answers) > 1 {
					same(t, answers[0], answers[1])
				}
				large := refused(t, answers[0], flags != nil)
				if got := len(answers[0].Accepted) + large; got != len(documents) {
					t.Errorf("kubectl apply %s: of %d objects %d are answered", flags, len(documents), got)
				}
				row = append(row, fmt.Sprint(len(answers[0].Accepted)))
			}
			rows[p.Name] = row
		})
	}
	var table strings.Builder
	fmt.Fprintf(&table, "| project | version | objects | apply | apply --server-side |\n| --- | --- | --- | --- | --- |\n")
	for _, p := range Projects {
		if row := rows[p.Name]; row != nil {
			fmt.Fprintf(&table, "| %s |\n", strings.Join(row, " | "))
		}
	}
	t.Logf("\n%s", table.String())
}

// needDefinitions applies the definitions of a project.
func needDefinitions(t *testing.T, c *Cluster, p *Project, modules map[string]program.Module) {
	t.Helper()
	documents, err := p.Documents(modules, c.Kubectl)
	if err != nil {
		t.Fatal(err)
	}
	documents = slices.DeleteFunc(documents, func(d *Document) bool { return !d.Definition() })
	a, err := c.Apply(t.Context(), p.Name, p.Namespace, documents, "--server-side")
	if err != nil || len(a.Accepted) != len(documents) {
		t.Fatalf("definitions of %s: %v: %v", p.Name, err, a)
	}
}

// refused returns the number of objects that are too large for client-side apply. Any other rejection
// fails the test.
func refused(t *testing.T, a *Applied, serverSide bool) (large int) {
	t.Helper()
	for _, line := range a.Said {
		switch {
		case strings.HasPrefix(line, "Warning: "):
		case strings.Contains(line, tooLarge) && !serverSide:
			large++
		default:
			t.Errorf("kubectl says %s", line)
		}
	}
	return large
}

// same reports differences between the responses of two servers.
func same(t *testing.T, ours, theirs *Applied) {
	t.Helper()
	for _, lists := range [][2][]string{{ours.Accepted, theirs.Accepted}, {ours.Said, theirs.Said}} {
		for _, line := range lists[0] {
			if !slices.Contains(lists[1], line) {
				t.Errorf("anykind alone: %s", line)
			}
		}
		for _, line := range lists[1] {
			if !slices.Contains(lists[0], line) {
				t.Errorf("kube-apiserver alone: %s", line)
			}
		}
	}
}
