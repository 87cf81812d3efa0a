//go:build verify

package controllers

import (
	"flag"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/anykind/anykind/envtest/verify"
)

var (
	plans = flag.Int("plans", 40, "plans for each scenario")
	limit = flag.Duration("time", 5*time.Minute, "time for each scenario")
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	m.Run()
}

// known are findings in the published programs, by a part of their text.
var known = map[string][]string{
	// createSnapshotContent stores its own object, without a resourceVersion, if the content exists already. Each later
	// state of the content then counts as old: TestStuckSnapshot.
	"TestSnapshotController/takes": {"status.readyToUse is false; without faults it is true"},
	// checkandRemovePVCFinalizer reads the claim from the cache. If that has not seen the finalizer before the snapshot is
	// deleted, the finalizer stays until the next snapshot of the claim: TestStuckClaim.
	"TestSnapshotController/replaces": {"snapshot.storage.kubernetes.io/pvc-as-source-protection"},
	// processSnapshotWithDeletionTimestamp does not look for the content that spec.source names. If the snapshot is deleted
	// after its content is bound and before its status says so, the finalizer of the content stays: TestStuckContent.
	"TestSnapshotController/binds": {"VolumeSnapshotContent of-a exists; without faults it does not"},
	// initializeCaches fills the store of groups with snapshots: TestStuckGroup.
	"TestSnapshotController/groups": {"VolumeGroupSnapshot default/a: status is missing"},
	// A JobSet that the user resumes before it is suspended has no condition; that is right. One that completes before
	// the reconciliation after its resumption keeps the condition, since reconcile returns early: TestStuckJobSet.
	"TestJobSet/resumes": {"status.conditions[Suspended]"},
}

// A scene is a scenario with a name.
type scene struct {
	name string
	play func(*verify.Scenario)
}

// explore runs each scene in the world. It fails with findings that are not known.
func explore(t *testing.T, w verify.World, scenes []scene) {
	for _, c := range scenes {
		t.Run(c.name, func(t *testing.T) {
			w.Plans, w.Time, w.Findings = *plans, *limit, 5
			before := processor(t)
			r := verify.Explore(t, w, c.play)
			took := processor(t) - before
			t.Logf("%d plans for %d writes in %v of processor, %.1f in a second", r.Plans, len(r.Writes),
				took.Round(time.Second), float64(r.Plans)/took.Seconds())
			for _, f := range r.Findings {
				if isKnown(t.Name(), f.Text) {
					t.Logf("known, at plan %d: %s", f.At, f.Text)
					continue
				}
				t.Error(f.At, f)
			}
		})
	}
}

func isKnown(test, text string) bool {
	for _, k := range known[test] {
		if strings.Contains(text, k) {
			return true
		}
	}
	return false
}

// processor returns the time of the processor that this process has used.
func processor(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// directory returns a folder of a required module.
func directory(t *testing.T, module, folder string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), folder)
}

// managerOptions are those of a manager that listens on no socket.
func managerOptions(s *runtime.Scheme) ctrl.Options {
	skip := true
	return ctrl.Options{Scheme: s, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip}}
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

func must(err error) {
	if err != nil {
		panic(err)
	}
}
