package nodes

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

// Restriction rejects writes of a kubelet to objects of other nodes. It is a Mutator that changes
// nothing, so that it sees the object as the kubelet sends it.
type Restriction struct {
	Authorizer      authz.Authorizer
	Pods            *stored.Lister[corev1.Pod]
	Nodes           *stored.Lister[corev1.Node]
	ServiceAccounts *stored.Lister[corev1.ServiceAccount]
	Claims          *stored.Lister[corev1.PersistentVolumeClaim]
	Volumes         *stored.Lister[corev1.PersistentVolume]
	Drivers         *stored.Lister[storagev1.CSIDriver]
}

// A question is a write of a node.
type question struct {
	*registry.Admission
	by   *Restriction
	node string
}

// refuse returns a Forbidden error.
func (q *question) refuse(format string, args ...any) error {
	return q.Forbidden(fmt.Errorf(format, args...))
}

var deciders = map[schema.GroupResource]func(*question, context.Context) error{
	corev1.Resource("pods"): (*question).pod,
	nodes:                   (*question).nodeObject,
	corev1.Resource("persistentvolumeclaims"):             (*question).claim,
	corev1.Resource("serviceaccounts"):                    (*question).serviceAccount,
	certificatesv1.Resource("podcertificaterequests"):     (*question).podCertificate,
	coordinationv1.Resource("leases"):                     (*question).lease,
	storagev1.Resource("csinodes"):                        (*question).csiNode,
	resourcev1.Resource("resourceslices"):                 (*question).resourceSlice,
	certificatesv1.Resource("certificatesigningrequests"): (*question).signingRequest,
}

// Mutate implements registry.Mutator.
func (r *Restriction) Mutate(ctx context.Context, a *registry.Admission) error {
	name, ok := a.User.Node()
	if !ok || a.Operation == registry.Connect {
		return nil
	}
	q := &question{a, r, name}
	if name == "" {
		return q.refuse("could not determine node from user %q", a.User.Name)
	}
	if decide := deciders[a.Target.Definition.GroupResource()]; decide != nil {
		return decide(q, ctx)
	}
	return nil
}

// objectName returns the name of the written object.
func (q *question) objectName() string {
	if q.Target.Name != "" {
		return q.Target.Name
	}
	return object.Name(q.Object)
}

// nodeObject checks a write of a Node: only its own, and without fields that decide scheduling.
func (q *question) nodeObject(ctx context.Context) error {
	if name := q.objectName(); name != q.node {
		return q.refuse("node %q is not allowed to modify node %q", q.node, name)
	}
	config := kind.Value(q.Object, "spec", "configSource")
	switch q.Operation {
	case registry.Create:
		if config != nil {
			return q.refuse("node %q is not allowed to create pods with a non-nil configSource", q.node)
		}
		if labels := forbiddenLabels(q.Object, nil); labels != "" {
			return q.refuse("node %q is not allowed to set the following labels: %s", q.node, labels)
		}
	case registry.Update:
		old, err := q.Old(ctx)
		if err != nil {
			return err
		}
		switch {
		case config != nil && !object.Equal(config, kind.Value(old, "spec", "configSource")):
			return q.refuse("node %q is not allowed to update configSource to a new non-nil configSource", q.node)
		case !object.Equal(kind.List(q.Object, "spec", "taints"), kind.List(old, "spec", "taints")):
			return q.refuse("node %q is not allowed to modify taints", q.node)
		case !object.Equal(kind.List(q.Object, "metadata", "ownerReferences"), kind.List(old, "metadata", "ownerReferences")):
			return q.refuse("node %q is not allowed to modify ownerReferences", q.node)
		}
		if labels := forbiddenLabels(q.Object, old); labels != "" {
			return q.refuse("is not allowed to modify labels: %s", labels)
		}
	}
	return nil
}

// forbiddenLabels lists the changed labels that a kubelet must not set. They could attract pods
// that are not meant for the node.
func forbiddenLabels(node, old object.Tree) string {
	now, was := kind.Pairs(node, "metadata", "labels"), kind.Pairs(old, "metadata", "labels")
	var forbidden []string
	for _, both := range [][2]map[string]string{{now, was}, {was, now}} {
		for key, value := range both[0] {
			if other, ok := both[1][key]; (!ok || other != value) && isOfOthers(key) {
				forbidden = append(forbidden, key)
			}
		}
	}
	slices.Sort(forbidden)
	return strings.Join(slices.Compact(forbidden), ", ")
}

// isOfOthers reports whether kubelets must not set a label.
func isOfOthers(label string) bool {
	domain, _, ok := strings.Cut(label, "/")
	if !ok {
		return false
	}
	below := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	if below(corev1.LabelNamespaceNodeRestriction) {
		return true
	}
	ours := slices.Contains(ofKubelets[:], label) || below(corev1.LabelNamespaceSuffixKubelet) || below(corev1.LabelNamespaceSuffixNode)
	return (below("kubernetes.io") || below("k8s.io")) && !ours
}

// ofKubelets are the labels of Kubernetes that kubelets may set.
var ofKubelets = [...]string{
	corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
	corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelOSStable, corev1.LabelArchStable,
	"beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}

// lease checks a write of a Lease: only the heartbeat of the node.
func (q *question) lease(context.Context) error {
	if q.Target.Namespace != corev1.NamespaceNodeLease {
		return q.refuse("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	}
	if q.objectName() != q.node {
		return q.refuse("can only access node lease with the same name as the requesting node")
	}
	return nil
}

// csiNode checks a write of a CSINode: only its own.
func (q *question) csiNode(ctx context.Context) error {
	if q.objectName() != q.node {
		return q.refuse("can only access CSINode with the same name as the requesting node")
	}
	if q.Target.Subresource != "status" {
		return nil
	}
	if !q.Gates.On(gate.CSIVolumeHealth) {
		return q.refuse("CSIVolumeHealth feature gate is disabled")
	}
	old, err := q.Old(ctx)
	if err == nil && !object.Equal(old["spec"], q.Object["spec"]) {
		err = q.refuse("node %q is not allowed to modify CSINode spec via status", q.node)
	}
	return err
}

// resourceSlice checks creates and deletions of ResourceSlices: only those of the node. The node
// authorizer decides the other writes.
func (q *question) resourceSlice(ctx context.Context) error {
	slice, verb := q.Object, "create"
	switch q.Operation {
	case registry.Create:
	case registry.Delete:
		verb = "delete"
		var err error
		if slice, err = q.Old(ctx); err != nil {
			return err
		}
	default:
		return nil
	}
	if kind.Text(slice, "spec", "nodeName") != q.node {
		return q.refuse("can only %s ResourceSlice with the same NodeName as the requesting node", verb)
	}
	return nil
}

// claim checks the status of a claim: a node may only report the size of a volume.
func (q *question) claim(ctx context.Context) error {
	if q.Target.Subresource != "status" {
		return q.refuse("may only update PVC status")
	}
	if q.Operation != registry.Update {
		return q.refuse("unexpected operation %q", q.Operation)
	}
	old, err := q.Old(ctx)
	if err != nil {
		return err
	}
	now, was := claimBut(q.Object), claimBut(old)
	if !equality.Semantic.DeepEqual(now, was) {
		return q.refuse("node %q is not allowed to update fields other than status.quantity and status.conditions: %v", q.node, diff.Diff(was, now))
	}
	return nil
}

// claimBut returns a claim without the fields that a node may change.
func claimBut(t object.Tree) *corev1.PersistentVolumeClaim {
	claim := kind.ValueOf[corev1.PersistentVolumeClaim](t)
	claim.ResourceVersion, claim.ManagedFields = "", nil
	claim.Status.Capacity, claim.Status.Conditions = nil, nil
	claim.Status.AllocatedResourceStatuses, claim.Status.AllocatedResources = nil, nil
	return claim
}

// signingRequest checks that a node requests certificates only for itself.
func (q *question) signingRequest(context.Context) error {
	signer := kind.Text(q.Object, "spec", "signerName")
	if q.Gates.On(gate.AllowInsecureKubeletCertificateSigningRequests) {
		return nil
	}
	if q.Operation != registry.Create || signer != certificatesv1.KubeletServingSignerName && signer != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(kind.Text(q.Object, "spec", "request"))
	if err != nil {
		return q.refuse("unable to parse csr: %w", err)
	}
	asked, err := pki.ParseRequest(text)
	if err != nil {
		return q.refuse("unable to parse csr: %w", err)
	}
	if asked.Subject.CommonName != q.User.Name {
		return q.refuse("can only create a node CSR with CN=%s", q.User.Name)
	}
	return nil
}
