// Package former reads objects in removed versions of Kubernetes' own groups.
//
// Kubernetes stores an object in the storage version of the time, and converts it only when it is
// next written. So the etcd of an old cluster may have objects in versions that were removed long
// ago. This package has those that kube-apiserver still reads, and converts their fields. It does
// not know how objects are stored, nor how their kinds are served.
package former

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Version is a removed version of a kind.
type Version struct {
	// Object returns an empty object of its Go type. It is nil if the type of the storage version
	// has the same fields, with the same numbers in protobuf.
	Object func() Message

	raise func(obj map[string]any)
}

// Find returns a removed version of a kind, if it is known.
func Find(apiVersion, kind string) (Version, bool) {
	gv, _ := schema.ParseGroupVersion(apiVersion) // the zero value, an unknown group, on error
	if v, ok := changed[gv.WithKind(kind)]; ok {
		return v, true
	}
	return Version{}, equalVersions[gv.WithKind(kind)]
}

// Versions returns the removed versions of a kind within its group, newest first, with the group.
func Versions(group, kind string) (apiVersions []string) {
	for _, version := range []string{"/v1beta3", "/v1beta2", "/v1beta1", "/v1alpha1"} {
		if _, ok := Find(group+version, kind); ok {
			apiVersions = append(apiVersions, group+version)
		}
	}
	return apiVersions
}

// Raise converts a JSON object to another version.
func (v Version) Raise(obj map[string]any, apiVersion string) {
	if v.raise != nil {
		v.raise(obj)
	}
	obj["apiVersion"] = apiVersion
}

// equalVersions are the versions that differ only in name.
var equalVersions = func() map[schema.GroupVersionKind]bool {
	out := map[schema.GroupVersionKind]bool{}
	for line := range strings.Lines(`
		admissionregistration.k8s.io/v1alpha1 ValidatingAdmissionPolicy
		admissionregistration.k8s.io/v1beta1 ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
		apiregistration.k8s.io/v1beta1 APIService
		apps/v1beta1 ControllerRevision
		apps/v1beta2 ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet
		batch/v1beta1 CronJob
		coordination.k8s.io/v1beta1 Lease
		extensions/v1beta1 NetworkPolicy
		flowcontrol.apiserver.k8s.io/v1beta1 FlowSchema
		flowcontrol.apiserver.k8s.io/v1beta2 FlowSchema
		flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema
		networking.k8s.io/v1beta1 IngressClass
		node.k8s.io/v1beta1 RuntimeClass
		rbac.authorization.k8s.io/v1beta1 ClusterRole ClusterRoleBinding Role RoleBinding
		scheduling.k8s.io/v1beta1 PriorityClass
		storage.k8s.io/v1alpha1 CSIStorageCapacity VolumeAttachment VolumeAttributesClass
		storage.k8s.io/v1beta1 CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment
	`) {
		words := strings.Fields(line)
		for i, kind := range words {
			if gv, _ := schema.ParseGroupVersion(words[0]); i > 0 {
				out[gv.WithKind(kind)] = true
			}
		}
	}
	return out
}()
