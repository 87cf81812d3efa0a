package verify

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/anykind/anykind/envtest"
)

// kubelet is the name of the user that World.Kubelet acts as, and that of its node.
const kubelet = "kubelet"

var podKind = schema.GroupKind{Kind: "Pod"}

// startKubelet makes the client of the kubelet.
func (r *run) startKubelet() error {
	if !r.world.Kubelet {
		return nil
	}
	user, err := r.env.AddUser(envtest.User{Name: kubelet, Groups: []string{"system:masters"}}, nil)
	if err == nil {
		r.kubelet, err = kubernetes.NewForConfig(user.Config())
	}
	return err
}

// kubeletActs brings the first Pod that is not yet where it should be one step further. It reports whether
// there was one.
func (r *run) kubeletActs() bool {
	if r.kubelet == nil {
		return false
	}
	for _, id := range sorted(r.state.objects) {
		if id.kind != podKind {
			continue
		}
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(r.state.objects[id].Object, &pod); err != nil {
			r.fail(Scene, "the kubelet reads %s: %v", id, err)
		}
		acted, err := r.lifeOf(&pod)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // in real time, the Pod can have changed
			acted, err = true, nil
		}
		if err != nil {
			r.fail(Scene, "the kubelet and %s: %v", id, err)
		}
		if acted {
			return true
		}
	}
	return false
}

// lifeOf brings a Pod one step further: bound, ready, completed; deleted.
func (r *run) lifeOf(pod *corev1.Pod) (acted bool, err error) {
	ctx, pods := context.Background(), r.kubelet.CoreV1().Pods(pod.Namespace)
	over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case pod.DeletionTimestamp != nil:
		if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0 {
			return false, nil // a finalizer keeps it
		}
		return true, pods.Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
	case pod.Spec.NodeName == "" && len(pod.Spec.SchedulingGates) == 0:
		return true, pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: nodeOf(pod)},
		}, metav1.CreateOptions{})
	case pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodRunning && !over:
		return true, r.setPhase(pod, corev1.PodRunning)
	case pod.Spec.NodeName != "" && !over && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways:
		return true, r.setPhase(pod, corev1.PodSucceeded)
	}
	return false, nil
}

// nodeOf returns the name of the node that a Pod must run on, as those of DaemonSets say, or any name.
func nodeOf(pod *corev1.Pod) string {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return kubelet
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn {
				return field.Values[0]
			}
		}
	}
	return kubelet
}

// setPhase writes the status of a Pod whose containers all run, or all ended.
func (r *run) setPhase(pod *corev1.Pod, phase corev1.PodPhase) error {
	now := metav1.NewTime(time.Now())
	runs := phase == corev1.PodRunning
	ready := corev1.ConditionFalse
	if runs {
		ready = corev1.ConditionTrue
	}
	status := corev1.PodStatus{Phase: phase, StartTime: &now}
	for _, c := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: c, Status: ready, LastTransitionTime: now})
	}
	for _, c := range pod.Spec.Containers {
		s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: runs, Started: &runs}
		if runs {
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		} else {
			s.State.Terminated = &corev1.ContainerStateTerminated{StartedAt: now, FinishedAt: now, Reason: "Completed"}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = r.kubelet.CoreV1().Pods(pod.Namespace).Patch(context.Background(), pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
