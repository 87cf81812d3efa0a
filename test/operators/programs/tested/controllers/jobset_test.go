//go:build verify

package controllers

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/controllers"

	"github.com/anykind/anykind/envtest/verify"
)

// startJobSet starts jobset as its main function does, without webhooks.
func startJobSet(ctx context.Context, c *rest.Config) error {
	m, err := ctrl.NewManager(c, managerOptions(jobSetScheme()))
	if err != nil {
		return err
	}
	if err := controllers.SetupJobSetIndexes(ctx, m.GetFieldIndexer()); err != nil {
		return err
	}
	if err := controllers.SetupPodIndexes(ctx, m.GetFieldIndexer()); err != nil {
		return err
	}
	recorder := m.GetEventRecorder("jobset")
	if err := controllers.NewJobSetReconciler(m.GetClient(), m.GetScheme(), recorder).SetupWithManager(m); err != nil {
		return err
	}
	if err := controllers.NewPodReconciler(m.GetClient(), m.GetScheme(), recorder).SetupWithManager(m); err != nil {
		return err
	}
	return m.Start(ctx)
}

func jobSetScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	must(scheme.AddToScheme(s))
	must(jobset.AddToScheme(s))
	return s
}

// runJobs stands for the Job controller: a Job becomes active, and completes or fails 20 seconds later. It fails if its
// annotation names its restart.
func runJobs(ctx context.Context, c *rest.Config) error {
	m, err := ctrl.NewManager(c, managerOptions(scheme.Scheme))
	if err != nil {
		return err
	}
	run := func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		var job batchv1.Job
		if err := m.GetClient().Get(ctx, r.NamespacedName, &job); err != nil || job.DeletionTimestamp != nil || len(job.Status.Conditions) > 0 {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		now, one, zero := metav1.Now(), int32(1), int32(0)
		if job.Spec.Suspend != nil && *job.Spec.Suspend {
			return reconcile.Result{}, nil
		}
		if job.Status.StartTime == nil {
			job.Status.StartTime, job.Status.Active, job.Status.Ready = &now, 1, &one
			return reconcile.Result{RequeueAfter: runTime}, m.GetClient().Status().Update(ctx, &job)
		}
		if left := time.Until(job.Status.StartTime.Add(runTime)); left > 0 {
			return reconcile.Result{RequeueAfter: left}, nil
		}
		job.Status.Active, job.Status.Ready, job.Status.Terminating = 0, &zero, &zero
		job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
		if job.Annotations["fails"] != "" && job.Annotations["fails"] == job.Labels["jobset.sigs.k8s.io/restart-attempt"] {
			job.Status.Failed = 1
			job.Status.Conditions = conditions(now, batchv1.JobFailureTarget, batchv1.JobFailed)
		} else {
			job.Status.Succeeded, job.Status.CompletionTime, job.Status.CompletedIndexes = 1, &now, "0"
			job.Status.Conditions = conditions(now, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
		}
		return reconcile.Result{}, m.GetClient().Status().Update(ctx, &job)
	}
	if err := ctrl.NewControllerManagedBy(m).For(&batchv1.Job{}).Complete(reconcile.Func(run)); err != nil {
		return err
	}
	return m.Start(ctx)
}

const runTime = 20 * time.Second

func conditions(now metav1.Time, types ...batchv1.JobConditionType) (all []batchv1.JobCondition) {
	for _, t := range types {
		all = append(all, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now, Reason: "Ran"})
	}
	return all
}

// aJobSet has the values that jobset's webhook sets.
func aJobSet(change func(*jobset.JobSetSpec)) *jobset.JobSet {
	one, yes, indexed := int32(1), true, batchv1.IndexedCompletion
	job := func(name string, replicas int32) jobset.ReplicatedJob {
		return jobset.ReplicatedJob{Name: name, Replicas: replicas, GroupName: "default", Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
			Completions: &one, Parallelism: &one, CompletionMode: &indexed,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "example.com/once"}},
			}},
		}}}
	}
	js := &jobset.JobSet{ObjectMeta: meta("js"), Spec: jobset.JobSetSpec{
		SuccessPolicy:  &jobset.SuccessPolicy{Operator: jobset.OperatorAll},
		StartupPolicy:  &jobset.StartupPolicy{StartupPolicyOrder: jobset.AnyOrder},
		Network:        &jobset.Network{EnableDNSHostnames: &yes, PublishNotReadyAddresses: &yes},
		ReplicatedJobs: []jobset.ReplicatedJob{job("leader", 1), job("workers", 2)},
	}}
	if change != nil {
		change(&js.Spec)
	}
	return js
}

// runs creates a JobSet that completes, and deletes it.
func runs(s *verify.Scenario) {
	s.Always("at most three Jobs", atMostJobs(3))
	s.Apply(aJobSet(nil))
	s.Settle()
	s.Delete(aJobSet(nil))
}

// restarts creates a JobSet with a Job that fails in its first attempt.
func restarts(s *verify.Scenario) {
	js := aJobSet(func(spec *jobset.JobSetSpec) {
		spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 2, RestartStrategy: jobset.Recreate}
		spec.ReplicatedJobs[1].Template.Annotations = map[string]string{"fails": "0"}
	})
	s.Apply(js)
	s.Finally("completed after one restart", func(state *verify.State) error {
		var now jobset.JobSet
		if err := state.Get(client.ObjectKeyFromObject(js), &now); err != nil {
			return err
		}
		if now.Status.Restarts != 1 || now.Status.TerminalState != string(jobset.JobSetCompleted) {
			return fmt.Errorf("%d restarts, %q", now.Status.Restarts, now.Status.TerminalState)
		}
		return nil
	})
}

// resumes creates a suspended JobSet, and resumes it in order.
func resumes(s *verify.Scenario) {
	yes, no := true, false
	set := func(suspended *bool) *jobset.JobSet {
		return aJobSet(func(spec *jobset.JobSetSpec) {
			spec.StartupPolicy.StartupPolicyOrder = jobset.InOrder
			spec.Suspend = suspended
		})
	}
	s.Apply(set(&yes))
	s.Settle()
	s.Apply(set(&no))
}

// expires creates a JobSet that is deleted after its end.
func expires(s *verify.Scenario) {
	after := int32(5)
	s.Apply(aJobSet(func(spec *jobset.JobSetSpec) { spec.TTLSecondsAfterFinished = &after }))
}

func atMostJobs(max int) func(*verify.State) error {
	return func(s *verify.State) error {
		var jobs batchv1.JobList
		if err := s.List(&jobs); err != nil {
			return err
		}
		if n := len(jobs.Items); n > max {
			return fmt.Errorf("%d Jobs", n)
		}
		return nil
	}
}

func TestJobSet(t *testing.T) {
	w := verify.World{
		Start: startJobSet, Scheme: jobSetScheme(), Quiet: 2 * runTime,
		Others:            []func(context.Context, *rest.Config) error{runJobs},
		CRDDirectoryPaths: []string{directory(t, "sigs.k8s.io/jobset", "config/components/crd/bases")},
	}
	explore(t, w, []scene{{"completes", runs}, {"restarts", restarts}, {"resumes", resumes}, {"expires", expires}})
}
