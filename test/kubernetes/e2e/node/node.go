// Package node is a fake node and scheduler for end-to-end tests. It binds every pod to the node and
// runs containers of the image agnhost, Kubernetes' own test image, as processes. It reports any other
// container as running without running it.
//
// Each pod has an address of its own, where its container ports are forwarded to its processes. The
// addresses have to be of this machine: EndpointSlices do not allow loopback addresses.
package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// A Node is the configuration of Run.
type Node struct {
	Client    kubernetes.Interface
	Name      string
	Agnhost   string       // path of the program
	Dir       string       // folder for files and logs of pods
	Addresses netip.Prefix // of pods, from the second on
	Failed    func(error)  // called for each error

	last  netip.Addr // last address of a pod
	pods  map[types.UID]*running
	ended sync.WaitGroup
}

// A running pod. Its processes end with its context.
type running struct {
	pod    *corev1.Pod
	cancel context.CancelFunc
	done   chan struct{}
}

// Run runs pods until ctx ends, and waits for the end of all of them.
func (n *Node) Run(ctx context.Context) {
	n.last, n.pods = n.Addresses.Addr().Next(), map[types.UID]*running{}
	changed := make(chan *corev1.Pod)
	send := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok {
			select {
			case changed <- pod:
			case <-ctx.Done():
			}
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(n.Client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: send, UpdateFunc: func(_, object any) { send(object) },
			DeleteFunc: func(object any) {
				if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
					object = unseen.Obj
				}
				if pod, ok := object.(*corev1.Pod); ok {
					pod = pod.DeepCopy()
					now := metav1.Now()
					pod.DeletionTimestamp = &now
					send(pod)
				}
			},
		},
	})
	n.ended.Go(func() { informer.RunWithContext(ctx) })
	defer n.ended.Wait()
	for {
		select {
		case pod := <-changed:
			n.sync(ctx, pod)
		case <-ctx.Done():
			return
		}
	}
}

// Add creates the node and reports it as ready.
func (n *Node) Add(ctx context.Context) error {
	node, err := n.Client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Spec.Taints = nil // a node has this taint until a controller has seen that it is ready
	_, err = n.Client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	return err
}

// sync makes the next change of a pod.
func (n *Node) sync(ctx context.Context, pod *corev1.Pod) {
	running, known := n.pods[pod.UID]
	over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case pod.DeletionTimestamp != nil:
		if known {
			delete(n.pods, pod.UID)
			running.cancel()
		}
		if pod.Spec.NodeName != "" {
			n.ended.Go(func() { n.forget(ctx, pod, running) })
		}
	case pod.Spec.NodeName == "" && len(pod.Spec.SchedulingGates) == 0:
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: n.Name}}
		n.fail(ctx, pod, n.Client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}))
	case pod.Spec.NodeName == n.Name && !known && !over:
		n.last = n.last.Next()
		n.pods[pod.UID] = n.start(ctx, pod, n.last.String())
	}
}

// start runs a pod at an address.
func (n *Node) start(ctx context.Context, pod *corev1.Pod, address string) *running {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{pod: pod, cancel: cancel, done: make(chan struct{})}
	n.ended.Go(func() {
		defer close(r.done)
		defer cancel()
		err := n.run(ctx, pod, address)
		if ctx.Err() == nil {
			n.fail(ctx, pod, err)
		}
	})
	return r
}

// forget deletes a terminating pod after its processes have ended.
func (n *Node) forget(ctx context.Context, pod *corev1.Pod, r *running) {
	if r != nil {
		<-r.done
	}
	now := int64(0)
	n.fail(ctx, pod, n.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}))
}

// fail records an error, unless the pod is gone.
func (n *Node) fail(ctx context.Context, pod *corev1.Pod, err error) {
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		n.Failed(fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err))
	}
}

// say patches the status of a pod as a kubelet does.
func (n *Node) say(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = n.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// runs returns the status of a pod with running and ready containers.
func runs(pod *corev1.Pod, address string) corev1.PodStatus {
	now, started := metav1.NewTime(time.Now()), true
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &now, ObservedGeneration: pod.Generation,
		PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
	}
	for _, t := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return status
}
