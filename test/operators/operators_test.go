package operators

import (
	"context"
	"flag"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

var operators = flag.Bool("operators", false, "build and run the published operators")

// serving starts anykind serve with its controllers.
func serving(t *testing.T) *Cluster {
	t.Helper()
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s, err := process.Start(ctx, anykind, t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return &Cluster{Kubectl: kubectl(t), Kubeconfig: s.Kubeconfig, Dir: t.TempDir()}
}

// published returns the documents of a project.
func published(t *testing.T, name string) []*Document {
	t.Helper()
	modules, err := program.Published("test/operators/published")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Projects {
		if p.Name != name {
			continue
		}
		documents, err := p.Documents(modules, kubectl(t))
		if err != nil {
			t.Fatal(err)
		}
		return documents
	}
	t.Fatalf("no project %s", name)
	return nil
}

// install applies the documents of a project.
func install(t *testing.T, c *Cluster, name, namespace string, documents []*Document) {
	t.Helper()
	a, err := c.Apply(t.Context(), name, namespace, documents, "--server-side")
	if err != nil {
		t.Fatal(err)
	}
	if refused(t, a, true); len(a.Accepted) != len(documents) {
		t.Fatalf("%d of %d objects are accepted", len(a.Accepted), len(documents))
	}
}

// start builds and starts an operator, and prints its log if the test fails.
func start(t *testing.T, c *Cluster, pkg string, documents []*Document, o Operator) *Process {
	t.Helper()
	file, err := Build(t.Context(), t.TempDir(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Start(t.Context(), file, o, documents)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("%s wrote\n%s", o.Deployment, p.Log())
		}
	})
	return p
}

// apply applies literal objects.
func apply(t *testing.T, c *Cluster, documents string) {
	t.Helper()
	all, err := split([]byte(documents))
	if err != nil {
		t.Fatal(err)
	}
	install(t, c, "objects", "", all)
}

// get returns the output of kubectl get, "" if there are no objects.
func get(t *testing.T, c *Cluster, args ...string) string {
	t.Helper()
	printed, _, _ := c.Run(t.Context(), append([]string{"get"}, args...)...)
	return strings.TrimSpace(printed)
}

// eventually polls a condition.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	for !so() {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("not in time: %s", what)
		}
	}
}

// free returns a free port.
func free(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func local(t *testing.T) string { return "127.0.0.1:" + strconv.Itoa(free(t)) }

// blameless reports errors in a log, except for retries after conflicts, and for lines with the words
// of own.
func blameless(t *testing.T, p *Process, own ...string) {
	t.Helper()
	own = append(own, "the object has been modified")
	for line := range strings.SplitSeq(p.Log(), "\n") {
		if !strings.Contains(line, `"level":"error"`) && !strings.HasPrefix(line, "E1") && !strings.HasPrefix(line, "E0") && !strings.Contains(line, "\tERROR\t") {
			continue
		}
		known := false
		for _, words := range own {
			known = known || strings.Contains(line, words)
		}
		if !known {
			t.Errorf("the log has an error: %s", line)
		}
	}
}

// needs skips a test of an operator unless a flag selects it: building one takes minutes.
func needs(t *testing.T) {
	t.Helper()
	if !*operators {
		t.Skip("only with -operators")
	}
}
