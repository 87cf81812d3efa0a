package controllers

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/anykind/anykind/envtest/verify"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	m.Run()
}

var labels = map[string]string{"app": "web"}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

func template(policy corev1.RestartPolicy, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
}

func aReplicaSet(n int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: meta("web"), Spec: appsv1.ReplicaSetSpec{
		Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(corev1.RestartPolicyAlways, "example.com/web:1"),
	}}
}

func aDeployment(n int32, image string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: meta("web"), Spec: appsv1.DeploymentSpec{
		Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(corev1.RestartPolicyAlways, image),
	}}
}

func aStatefulSet(n int32, image string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: meta("web"), Spec: appsv1.StatefulSetSpec{
		Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(corev1.RestartPolicyAlways, image),
	}}
}

func aDaemonSet(image string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: meta("agent"), Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(corev1.RestartPolicyAlways, image),
	}}
}

func aReplicationController(n int32) *corev1.ReplicationController {
	pod := template(corev1.RestartPolicyAlways, "example.com/web:1")
	return &corev1.ReplicationController{ObjectMeta: meta("web"), Spec: corev1.ReplicationControllerSpec{Replicas: &n, Selector: labels, Template: &pod}}
}

func aJob(n int32, ttl *int32) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: meta("once"), Spec: batchv1.JobSpec{
		TTLSecondsAfterFinished: ttl,
		Completions:             &n, Parallelism: &n, Template: template(corev1.RestartPolicyNever, "example.com/once"),
	}}
}

// atMost is an invariant: so many Pods that are not being deleted.
func atMost(max int) func(*verify.State) error {
	return func(s *verify.State) error {
		var pods corev1.PodList
		if err := s.List(&pods); err != nil {
			return err
		}
		n := 0
		for _, p := range pods.Items {
			if p.DeletionTimestamp == nil {
				n++
			}
		}
		if n > max {
			return fmt.Errorf("%d Pods", n)
		}
		return nil
	}
}

// inTurn applies objects, each after the one before has settled.
func inTurn(s *verify.Scenario, objects ...client.Object) {
	for i, o := range objects {
		if i > 0 {
			s.Settle()
		}
		s.Apply(o)
	}
}

// scale creates a ReplicaSet of two Pods, and scales it to three and to one.
func scale(s *verify.Scenario) {
	s.Always("at most three Pods", atMost(3))
	inTurn(s, aReplicaSet(2), aReplicaSet(3), aReplicaSet(1))
}

func roll(s *verify.Scenario) {
	inTurn(s, aDeployment(3, "example.com/web:1"), aDeployment(3, "example.com/web:2"), aDeployment(1, "example.com/web:1"))
}

func rollSet(s *verify.Scenario) {
	inTurn(s, aStatefulSet(3, "example.com/web:1"), aStatefulSet(3, "example.com/web:2"), aStatefulSet(1, "example.com/web:2"))
}

func rollDaemons(s *verify.Scenario) {
	for _, name := range []string{"a", "b"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Apply(n)
		s.Do("makes the node ready", func(ctx context.Context) error {
			return s.Patch(ctx, n, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":null}}`)))
		})
	}
	inTurn(s, aDaemonSet("example.com/agent:1"), aDaemonSet("example.com/agent:2"))
}

func scaleOld(s *verify.Scenario) {
	inTurn(s, aReplicationController(2), aReplicationController(3), aReplicationController(1))
}

func complete(s *verify.Scenario) {
	s.Always("at most three Pods", atMost(3))
	s.Apply(aJob(3, nil))
	s.Settle()
	s.Delete(aJob(3, nil))
}

func expire(s *verify.Scenario) {
	after := int32(5)
	s.Apply(aJob(1, &after))
}

func accounts(s *verify.Scenario) {
	a := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	s.Apply(a)
	s.Settle()
	s.Delete(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "default"}})
	s.Settle()
	s.Delete(a)
}

// Long runs have more plans: make verify.
var (
	plans = flag.Int("plans", 40, "plans for each controller")
	limit = flag.Duration("time", 5*time.Minute, "time for each controller")
)

// known are findings in the published program, by a part of their text.
var known = map[string]string{
	// Revisions are numbered from the cache: TestEqualRevisions.
	"StatefulSet": "revision is 1; without faults it is 2",
	"DaemonSet":   "revision is 1; without faults it is 2",
	"Deployment":  `deployment.kubernetes.io/revision-history is "1"; without faults it is missing`,
	// An object that comes and goes between two lists starts nothing. kube-controller-manager repairs it at
	// its resync, after 12 hours or more.
	"ServiceAccount": "ServiceAccount a/default is missing",
}

func TestControllers(t *testing.T) {
	for _, c := range []struct {
		name  string
		start []maker
		play  func(*verify.Scenario)
	}{
		{"ReplicaSet", []maker{replicaSets}, scale},
		{"ReplicationController", []maker{replicationControllers}, scaleOld},
		{"Deployment", []maker{deployments, replicaSets}, roll},
		{"StatefulSet", []maker{statefulSets}, rollSet},
		{"DaemonSet", []maker{daemonSets}, rollDaemons},
		{"Job", []maker{jobs}, complete},
		{"expired Job", []maker{jobs, expiredJobs}, expire},
		{"ServiceAccount", []maker{serviceAccounts}, accounts},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			r := verify.Explore(t, verify.World{Start: start(c.start...), Kubelet: true, Plans: *plans, Time: *limit, Findings: 5}, c.play)
			t.Logf("%d plans for %d writes in %v", r.Plans, len(r.Writes), time.Since(began).Round(time.Second))
			for _, f := range r.Findings {
				if k := known[c.name]; k == "" || !strings.Contains(f.Text, k) {
					t.Error(f.At, f)
				}
			}
		})
	}
}

// Kubernetes issue 129795: the ReplicaSet controller creates Pods again while their watch lags. With the gate
// StaleControllerConsistencyReplicaSet, which v1.36 enables, it does not.
func TestReplicaSetWithoutConsistency(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.StaleControllerConsistencyReplicaSet, false)
	r := verify.Explore(t, verify.World{Start: start(replicaSets), Kubelet: true, Plans: 1000, Time: 5 * time.Minute, Findings: 1}, scale)
	if len(r.Findings) != 1 || r.Findings[0].Kind != verify.Broken {
		t.Fatal(r.Findings)
	}
	f := r.Findings[0]
	t.Logf("plan %d: %v", f.At, f)
}
