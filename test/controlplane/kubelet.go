package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	applycoordination "k8s.io/client-go/applyconfigurations/coordination/v1"
)

// A kubelet is a fake kubelet: it reports its node as ready, renews the Lease, and reports the pods
// that are bound to the node as running. It runs no containers. A container with the command true or
// false ends at once, and any other runs until its pod is deleted.
type kubelet struct {
	client kubernetes.Interface
	node   string
	beat   time.Duration // interval of the Lease renewals
	number int           // number of pod IPs so far
	failed func(error)

	pods cache.Store
	todo workqueue.TypedRateLimitingInterface[string]
}

// startKubelet starts the fake kubelet of an existing node, and returns a function that stops it. It
// calls failed for each error.
func startKubelet(ctx context.Context, client kubernetes.Interface, node string, failed func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	k := &kubelet{
		client: client, node: node, beat: time.Second, failed: failed,
		todo: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	var group sync.WaitGroup
	group.Go(func() { k.live(ctx) })
	group.Go(func() { k.watch(ctx) })
	group.Go(func() { k.work(ctx) })
	return func() {
		cancel()
		k.todo.ShutDown()
		group.Wait()
	}
}

// live reports the node as ready, and renews its Lease until ctx ends.
func (k *kubelet) live(ctx context.Context) {
	beat := time.NewTicker(k.beat)
	defer beat.Stop()
	ready := false
	for {
		err := k.renew(ctx)
		if err == nil && !ready {
			err = k.ready(ctx)
			ready = err == nil
		}
		if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			k.failed(fmt.Errorf("node %s: %w", k.node, err))
		}
		select {
		case <-beat.C:
		case <-ctx.Done():
			return
		}
	}
}

func (k *kubelet) renew(ctx context.Context) error {
	lease := applycoordination.Lease(k.node, corev1.NamespaceNodeLease).WithSpec(applycoordination.LeaseSpec().
		WithHolderIdentity(k.node).WithLeaseDurationSeconds(40).WithRenewTime(metav1.NowMicro()))
	_, err := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Apply(ctx, lease, metav1.ApplyOptions{FieldManager: "kubelet"})
	return err
}

// ready sets the Ready condition of the node, and its capacity if it has none.
func (k *kubelet) ready(ctx context.Context) error {
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	status := map[string]any{"conditions": []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		Message: "kubelet is posting ready status", LastHeartbeatTime: now, LastTransitionTime: now,
	}}}
	if len(node.Status.Allocatable) == 0 {
		room := map[string]string{"cpu": "8", "memory": "16Gi", "pods": "110"}
		status["capacity"], status["allocatable"] = room, room
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Nodes().PatchStatus(ctx, k.node, patch)
	return err
}

// watch adds changed pods of the node to the queue.
func (k *kubelet) watch(ctx context.Context) {
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			k.todo.Add(key)
		}
	}
	pods := cache.NewListWatchFromClient(k.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", k.node))
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: pods, ObjectType: &corev1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: add, UpdateFunc: func(_, object any) { add(object) },
		},
	})
	k.pods = store
	informer.RunWithContext(ctx)
}

// work processes the queue until it is shut down.
func (k *kubelet) work(ctx context.Context) {
	for {
		key, shutdown := k.todo.Get()
		if shutdown {
			return
		}
		object, found, _ := k.pods.GetByKey(key)
		if found {
			err := k.sync(ctx, object.(*corev1.Pod))
			switch {
			case err == nil, apierrors.IsNotFound(err), ctx.Err() != nil:
				k.todo.Forget(key)
			case apierrors.IsConflict(err):
				k.todo.AddRateLimited(key)
			default:
				k.failed(fmt.Errorf("pod %s: %w", key, err))
				k.todo.AddRateLimited(key)
			}
		}
		k.todo.Done(key)
	}
}

// sync makes the next change of a pod's status.
func (k *kubelet) sync(ctx context.Context, pod *corev1.Pod) error {
	phase := pod.Status.Phase
	over := phase == corev1.PodSucceeded || phase == corev1.PodFailed
	switch {
	case pod.DeletionTimestamp != nil && !over:
		return k.say(ctx, pod, stopped(pod))
	case pod.DeletionTimestamp != nil:
		now := int64(0)
		return k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	case over:
		return nil
	case phase == corev1.PodPending:
		k.number++
		return k.say(ctx, pod, running(pod, fmt.Sprintf("10.88.%d.%d", k.number/250, k.number%250+1)))
	case phase == corev1.PodRunning && ends(pod):
		return k.say(ctx, pod, stopped(pod))
	}
	return nil
}

// say patches the status of a pod as a kubelet does.
func (k *kubelet) say(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// ends reports whether the containers of a pod end by themselves.
func ends(pod *corev1.Pod) bool {
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return false
	}
	for _, c := range pod.Spec.Containers {
		if len(c.Command) == 0 || c.Command[0] != "true" && c.Command[0] != "false" {
			return false
		}
	}
	return true
}

func running(pod *corev1.Pod, address string) corev1.PodStatus {
	now := metav1.Now()
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &now, ObservedGeneration: pod.Generation,
		PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		Conditions: conditions(corev1.ConditionTrue, now, corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized),
	}
	started := true
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return status
}

func stopped(pod *corev1.Pod) corev1.PodStatus {
	now, started := metav1.Now(), false
	status := corev1.PodStatus{
		Phase: corev1.PodSucceeded, ObservedGeneration: pod.Generation,
		Conditions: conditions(corev1.ConditionFalse, now, corev1.PodReady, corev1.ContainersReady),
	}
	for _, c := range pod.Spec.Containers {
		end := &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: now}
		if len(c.Command) > 0 && c.Command[0] == "false" {
			end.ExitCode, end.Reason, status.Phase = 1, "Error", corev1.PodFailed
		}
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Started: &started, State: corev1.ContainerState{Terminated: end},
		})
	}
	return status
}

func conditions(value corev1.ConditionStatus, now metav1.Time, of ...corev1.PodConditionType) []corev1.PodCondition {
	var all []corev1.PodCondition
	for _, t := range of {
		all = append(all, corev1.PodCondition{Type: t, Status: value, LastTransitionTime: now})
	}
	return all
}
