package namespace

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
)

// nowhere is a feature of a pod without a node.
func nowhere(_ *controllertest.World, t object.Tree) {
	t["spec"] = object.Tree{
		"containers":                    []any{object.Tree{"name": "c", "image": "i"}},
		"terminationGracePeriodSeconds": int64(30),
	}
}

// onNode is a feature of a pod on a node, with a grace period of half a minute.
func onNode(w *controllertest.World, t object.Tree) {
	nowhere(w, t)
	t["spec"].(object.Tree)["nodeName"] = "n"
}

// kill removes a pod as its kubelet does after the pod has ended.
func (w *world) kill(what string) {
	w.T.Helper()
	_, err := w.Registry.Delete(w.Ctx, w.Target(what), &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, registry.WriteOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	w.Wait()
}

// A pod has its grace period before its namespace is deleted; a pod without a node has none. The
// status reports a pod that does not end.
func TestNamespaceWithPods(t *testing.T) {
	const fine = `
			NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered
			NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed
			NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be waiting on finalization
			NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: pods. has 1 resource instances
			NamespaceFinalizersRemaining False ContentHasNoFinalizers: All content-preserving finalizers finished`
	const failed = `
			NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered
			NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed
			NamespaceDeletionContentFailure True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: dev for gvr: /v1, Resource=pods
			NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: pods. has 1 resource instances
			NamespaceFinalizersRemaining False ContentHasNoFinalizers: All content-preserving finalizers finished`
	in(t, func(w *world) {
		w.Create("pod dev/nowhere", nowhere)
		w.Create("pod dev/a", onNode)
		w.Delete("namespace dev", "")
		w.Shows(`
			namespace dev going
			pod dev/a going`)
		w.conditions("dev", fine)
		w.Sleep(29 * time.Second)
		w.conditions("dev", fine)
		w.Sleep(2 * time.Second)
		w.conditions("dev", failed)
		w.kill("pod dev/a")
		w.Sleep(10 * time.Minute)
		w.Shows(``)
		w.empty("dev")
	})
}

// The owner of a pod may be deleted before the pod has ended, unless it is in foreground deletion.
func TestOwnersOfPods(t *testing.T) {
	in(t, func(w *world) {
		w.Create("namespace ops")
		for _, owner := range []string{"fast", "slow"} {
			w.Create("configmap ops/" + owner)
			w.Create("pod ops/of-"+owner, onNode, controllertest.Blocking("configmap ops/"+owner))
		}
		w.Delete("configmap ops/fast", metav1.DeletePropagationBackground)
		w.Delete("configmap ops/slow", metav1.DeletePropagationForeground)
		w.Sleep(time.Minute)
		w.Shows(`
			configmap ops/slow [foregroundDeletion] going
			namespace ops
			pod ops/of-fast going <- fast!
			pod ops/of-slow going <- slow!`)
		w.kill("pod ops/of-slow")
		w.kill("pod ops/of-fast")
		w.Sleep(time.Minute)
		w.Shows(`
			namespace ops`)
	})
}
