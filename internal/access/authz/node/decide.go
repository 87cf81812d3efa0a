package node

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/gate"
)

// A question is a request of a node, and the decision so far.
type question struct {
	*authz.Attributes
	node  string
	gates *gate.Set

	allowed bool
	reason  string // of a denial
	// object, if set, must be related to the node.
	object vertex
}

func (q *question) allow() { q.allowed = true }

func (q *question) refuse(format string, a ...any) { q.reason = fmt.Sprintf(format, a...) }

// answer returns the decision.
func (q *question) answer() (authz.Decision, string, error) {
	if q.allowed {
		return authz.Allow, "", nil
	}
	if q.object.name != "" {
		q.refuse("no relationship found between node '%s' and this object", q.node)
	}
	return authz.NoOpinion, q.reason, nil
}

// related requires a path from the object to the node.
func (q *question) related(k kind) {
	if q.Name == "" {
		q.refuse("No Object name found")
		return
	}
	q.object = vertex{k, q.Namespace, q.Name}
}

// is reports whether the request has one of the verbs.
func (q *question) is(verbs ...string) bool { return slices.Contains(verbs, q.Verb) }

// selects reports whether a field selector limits the request to objects of the node.
func (q *question) selects(field string) bool {
	for _, r := range q.Select().Fields {
		if r.Field == field && r.Operator == selection.Equals && r.Value == q.node {
			return true
		}
	}
	return false
}

// deciders decide requests for kinds where the rights of a node depend on the object.
var deciders = map[[2]string]func(*question){
	{"", "secrets"}:                                   func(q *question) { q.read(secrets) },
	{"", "configmaps"}:                                func(q *question) { q.read(configMaps) },
	{"", "persistentvolumeclaims"}:                    (*question).claim,
	{"", "persistentvolumes"}:                         func(q *question) { q.get(persistentVolumes) },
	{"resource.k8s.io", "resourceclaims"}:             func(q *question) { q.get(resourceClaims) },
	{"storage.k8s.io", "volumeattachments"}:           func(q *question) { q.get(volumeAttachments) },
	{"", "serviceaccounts"}:                           (*question).serviceAccount,
	{"coordination.k8s.io", "leases"}:                 (*question).lease,
	{"storage.k8s.io", "csinodes"}:                    (*question).csiNode,
	{"resource.k8s.io", "resourceslices"}:             (*question).resourceSlice,
	{"", "nodes"}:                                     (*question).nodeObject,
	{"", "pods"}:                                      (*question).pod,
	{"certificates.k8s.io", "podcertificaterequests"}: (*question).podCertificateRequest,
}

// get decides requests for kinds that a node may only get.
func (q *question) get(k kind) {
	switch {
	case q.Verb != "get":
		q.refuse("can only get individual resources of this type")
	case q.Subresource != "":
		q.refuse("cannot get subresource")
	default:
		q.related(k)
	}
}

// read decides requests for kinds that a node may get, list and watch, one object at a time.
func (q *question) read(k kind) {
	switch {
	case !q.is("get", "list", "watch"):
		q.refuse("can only read resources of this type")
	case q.Subresource != "":
		q.refuse("cannot read subresource")
	case q.Namespace == "":
		q.refuse("can only read namespaced object of this type")
	default:
		q.related(k)
	}
}

func (q *question) claim() {
	switch {
	case q.Subresource != "status":
		q.get(persistentVolumeClaims)
	case !q.is("update", "patch"):
		q.refuse("can only get/update/patch this type")
	default:
		q.related(persistentVolumeClaims)
	}
}

func (q *question) serviceAccount() {
	reads := q.gates.On(gate.KubeletServiceAccountTokenForCredentialProviders) || q.gates.On(gate.PodCertificateRequest)
	switch {
	case q.Verb == "get" && q.Subresource == "" && !reads:
		q.refuse("not allowed to get service accounts")
	case q.Verb == "get" && q.Subresource == "":
		q.read(serviceAccounts)
	case q.Verb != "create" || q.Name == "":
		q.refuse("can only create tokens for individual service accounts")
	case q.Subresource != "token":
		q.refuse("can only create token subresource of serviceaccount")
	default:
		q.related(serviceAccounts)
	}
}

// lease decides requests for the Lease of the node. A create request does not have its name yet.
func (q *question) lease() {
	switch {
	case !q.is("get", "create", "update", "patch", "delete"):
		q.refuse("can only get, create, update, patch, or delete a node lease")
	case q.Namespace != corev1.NamespaceNodeLease:
		q.refuse("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	case q.Verb != "create" && q.Name != q.node:
		q.refuse("can only access node lease with the same name as the requesting node")
	default:
		q.allow()
	}
}

func (q *question) csiNode() {
	switch {
	case q.Subresource == "status" && !q.gates.On(gate.CSIVolumeHealth):
		q.refuse("CSINode status access requires CSIVolumeHealth feature")
	case q.Subresource == "status" && !q.is("get", "update", "patch"):
		q.refuse("can only get, update, or patch CSINode status")
	case q.Subresource != "" && q.Subresource != "status":
		q.refuse("cannot authorize CSINode subresources")
	case q.Subresource == "" && !q.is("get", "create", "update", "patch", "delete"):
		q.refuse("can only get, create, update, patch, or delete a CSINode")
	case q.Verb != "create" && q.Name != q.node:
		q.refuse("can only access CSINode with the same name as the requesting node")
	default:
		q.allow()
	}
}

func (q *question) resourceSlice() {
	switch {
	case q.Subresource != "":
		q.refuse("cannot authorize ResourceSlice subresources")
	case q.Verb == "create":
		q.allow()
	case q.is("get", "update", "patch", "delete"):
		q.related(resourceSlices)
	case !q.is("watch", "list", "deletecollection"):
		q.refuse("only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection")
	case q.selects("spec.nodeName"):
		q.allow()
	default:
		q.refuse("can only list/watch/deletecollection resourceslices with nodeName field selector")
	}
}

func (q *question) podCertificateRequest() {
	switch {
	case !q.gates.On(gate.PodCertificateRequest): // no rule allows them
	case q.Subresource != "":
		q.refuse("nodes may not access the status subresource of PodCertificateRequests")
	case q.Verb == "create":
		q.allow()
	case q.Verb == "get":
		q.related(podCertificateRequests)
	case !q.is("list", "watch"):
		q.refuse("nodes may not %s podcertificaterequests", q.Verb)
	case q.selects("spec.nodeName"):
		q.allow()
	default:
		q.refuse("can only list/watch podcertificaterequests with nodeName field selector")
	}
}

// nodeObject decides requests for the Node. A kubelet sends them before the Node exists.
func (q *question) nodeObject() {
	switch {
	case q.Subresource == "status" && q.is("update", "patch"):
		q.allow()
	case q.Subresource != "":
	case q.is("create", "update", "patch"):
		q.allow()
	case !q.is("get", "list", "watch"):
	case q.Name == q.node:
		q.allow()
	case q.Name == "":
		q.refuse("node '%s' cannot read all nodes, only its own Node object", q.node)
	default:
		q.refuse("node '%s' cannot read '%s', only its own Node object", q.node, q.Name)
	}
}

// pod decides requests for pods of the node, including mirror pods.
func (q *question) pod() {
	switch {
	case q.Subresource == "status" && q.is("update", "patch"), q.Subresource == "eviction" && q.Verb == "create":
		q.allow()
	case q.Subresource != "":
	case q.Verb == "get":
		q.get(pods)
	case q.is("create", "delete"):
		q.allow()
	case !q.is("list", "watch"):
	case q.selects("spec.nodeName"):
		q.allow()
	case q.Name != "":
		q.related(pods)
	default:
		q.refuse("can only list/watch pods with spec.nodeName field selector")
	}
}
