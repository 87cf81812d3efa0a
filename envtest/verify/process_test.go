package verify

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
)

// programVariable makes the test binary one of the controllers of the tests.
const programVariable = "VERIFY_TEST_PROGRAM"

// runProgram runs a controller until a signal, as a main function does.
func runProgram(name string) error {
	if name == "panics" {
		panic("no such luck")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(plantedBugs, func(p planted) bool { return p.pattern == name })
	if i < 0 {
		return reconciler(named).start(ctrl.SetupSignalHandler(), config)
	}
	return plantedBugs[i].start(ctrl.SetupSignalHandler(), config)
}

// processOf is a World with the controller in a process of its own.
func processOf(t *testing.T, name string) World {
	t.Setenv(programVariable, name)
	return World{Command: []string{os.Args[0]}, Output: t.Output(), Quiet: 100 * time.Millisecond, Plans: 5, Time: 2 * time.Minute}
}

// A crash reveals the bug of a program in a process of its own, and its story names the cause.
func TestProcess(t *testing.T) {
	w := processOf(t, "status before the work")
	w.Plan = "crash-after:1"
	r := Explore(t, w, applyOne)
	if len(r.Findings) != 1 || r.Findings[0].Kind != Different || !strings.Contains(r.Findings[0].Text, "Secret default/m is missing") ||
		!strings.Contains(r.Findings[0].Story.String(), "the program crashes before the response to update configmaps default/m") {
		t.Error(r, r.Findings)
	}
}

// A correct program in a process of its own has no finding.
func TestCorrectProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("runs take seconds")
	}
	w := processOf(t, "correct")
	w.Plans, w.Time, w.Quiet = 30, 3*time.Minute, 200*time.Millisecond
	r := Explore(t, w, remove)
	if len(r.Findings) > 0 || r.Plans < 10 {
		t.Errorf("%d plans: %v", r.Plans, r.Findings)
	}
}

// The panic of a process is a problem of its own kind, with its message.
func TestProcessPanics(t *testing.T) {
	r := Explore(t, processOf(t, "panics"), applyOne)
	if len(r.Findings) != 1 || r.Findings[0].Kind != Panics || r.Findings[0].Text != "panic: no such luck" {
		t.Errorf("%v", r.Findings)
	}
}

func TestTail(t *testing.T) {
	var last tail
	for i := range 20_000 {
		fmt.Fprintf(&last, "line %d\n", i)
	}
	if lines := strings.Split(last.String(), "\n"); len(lines) != 10 || lines[9] != "line 19999" || len(last.kept) > tailBytes || last.panicked() != "" {
		t.Errorf("%q, %d bytes", last.String(), len(last.kept))
	}
}
