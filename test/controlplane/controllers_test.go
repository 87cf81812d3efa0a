package controlplane

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// unseen returns the controllers of kube-controller-manager without a script, with the reasons.
func unseen() map[string]string {
	return map[string]string{
		"certificatesigningrequest-cleaner-controller": "runs; looks for old requests at its start, when it has not seen any yet, and then each hour",
		"podgroup-protection-controller":               "does not run: its feature gate, GenericWorkload, is off by default",
		"resourcepoolstatusrequest-controller":         "does not run: its feature gate, DRAResourcePoolStatus, is off by default",
		"podcertificaterequest-cleaner-controller":     "runs; deletes requests that are older than 15 minutes",
	}
}

var (
	all      = flag.Bool("all", false, "run every controller of kube-controller-manager (minutes)")
	duration = flag.Duration("duration", 0, "repeat the run of all controllers for this time")
)

// Workloads run with all of our own controllers enabled, beside the same ones of
// kube-controller-manager.
func TestWorkloads(t *testing.T) {
	p := startPlane(t)
	t.Run("scripts", func(t *testing.T) { scripts(t, "workloads", *options, p.stage) })
	p.check(t)
}

// A script shows each controller of kube-controller-manager at work, with the same controllers of our
// own disabled. The test prints the work of each at the end.
func TestControllers(t *testing.T) {
	if !*all {
		t.Skip("it takes minutes: make manager")
	}
	var off []string
	for _, name := range both(t) {
		off = append(off, "-"+name)
	}
	p := startPlane(t, "--controllers=*,"+strings.Join(off, ","))
	end, rounds := time.Now().Add(*duration), 0
	for more := true; more && !t.Failed(); more = time.Now().Before(end) {
		rounds++
		t.Run(fmt.Sprint("round ", rounds), func(t *testing.T) { scripts(t, "controllers", *options, p.stage) })
	}
	p.check(t)
	if !t.Failed() {
		must(t, report(os.Stdout, controllersOfManager(t), seenDoing(t), rounds))
	}
}

// The same scripts pass with all of our controllers enabled: duplicates do no harm.
func TestBoth(t *testing.T) {
	if !*all {
		t.Skip("it takes minutes: make manager")
	}
	p := startPlane(t)
	t.Run("scripts", func(t *testing.T) { scripts(t, "controllers", *options, p.stage) })
	p.check(t)
}

// report prints a table of the controllers with the work of each.
func report(to io.Writer, controllers []string, seen map[string]string, rounds int) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CONTROLLER\tSEEN\tDOING")
	for _, name := range controllers {
		if what, found := seen[name]; found {
			fmt.Fprintf(w, "%s\t%d\t%s\n", name, rounds, what)
		} else {
			fmt.Fprintf(w, "%s\t-\t%s\n", name, unseen()[name])
		}
	}
	return w.Flush()
}

// Each controller has a script, or is in unseen.
func TestEachController(t *testing.T) {
	seen, theirs := seenDoing(t), controllersOfManager(t)
	for _, name := range theirs {
		_, excused := unseen()[name]
		if _, found := seen[name]; found == excused {
			t.Errorf("%s has a script: %t; is excused from having one: %t", name, found, excused)
		}
	}
	for name := range seen {
		if !slices.Contains(theirs, name) {
			t.Errorf("controllers/%s.txtar: there is no such controller", name)
		}
	}
}

// seenDoing returns the work of each controller: the first sentence of its script.
func seenDoing(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("controllers/*.txtar")
	must(t, err)
	seen := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		first, _, _ := strings.Cut(string(text), ".")
		seen[strings.TrimSuffix(filepath.Base(file), ".txtar")] = strings.Join(strings.Fields(strings.ReplaceAll(first, "#", "")), " ")
	}
	return seen
}

var (
	managerHas = regexp.MustCompile(`All controllers: (.*)`)
	anykindHas = regexp.MustCompile(`(?s)disables\s+foo;\s+of\s+(.*?)\s+\(default\s+\[\*\]\)`)
)

func controllersOfManager(t *testing.T) []string {
	t.Helper()
	return namedIn(t, managerHas, kubeControllerManager, "--help")
}

// both returns the controllers that both anykind and kube-controller-manager have.
func both(t *testing.T) []string {
	t.Helper()
	theirs := controllersOfManager(t)
	return slices.DeleteFunc(namedIn(t, anykindHas, anykind, "serve", "--help"), func(name string) bool {
		return !slices.Contains(theirs, name)
	})
}

// namedIn returns the names that a pattern finds in the help of a program.
func namedIn(t *testing.T, list *regexp.Regexp, build func() (string, error), command ...string) []string {
	t.Helper()
	path, err := build()
	must(t, err)
	help, err := exec.Command(path, command...).Output()
	must(t, err)
	match := list.FindSubmatch(help)
	if match == nil {
		t.Fatalf("%s %s names no controllers", path, strings.Join(command, " "))
	}
	return strings.Split(strings.Join(strings.Fields(string(match[1])), " "), ", ")
}
