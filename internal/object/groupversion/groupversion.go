// Package groupversion lists the versions of Kubernetes' own groups, including those that are not
// served. It does not know their kinds.
package groupversion

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/order"
)

// OfClients returns the versions with Go types in client-go. OpenAPI documents of custom
// resources list DeleteOptions as a kind of each.
func OfClients() []schema.GroupVersion { return parse(groupVersions) }

// OfServer returns those of OfClients and the versions that only kube-apiserver itself has,
// sorted. OpenAPI v2 lists DeleteOptions as a kind of each.
func OfServer() []schema.GroupVersion {
	out := parse(groupVersions + serverGroupVersions)
	order.Stable(out, func(a, b schema.GroupVersion) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version))
	})
	return out
}

func parse(lines string) []schema.GroupVersion {
	var out []schema.GroupVersion
	for line := range strings.Lines(lines) {
		group, versions, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		for v := range strings.SplitSeq(versions, " ") {
			out = append(out, schema.GroupVersion{Group: group, Version: v})
		}
	}
	return out
}

const serverGroupVersions = `admission.k8s.io: v1 v1beta1
apiextensions.k8s.io: v1 v1beta1
apiregistration.k8s.io: v1 v1beta1
imagepolicy.k8s.io: v1alpha1
`

const groupVersions = `: v1
admissionregistration.k8s.io: v1 v1alpha1 v1beta1
apps: v1 v1beta1 v1beta2
authentication.k8s.io: v1 v1alpha1 v1beta1
authorization.k8s.io: v1 v1beta1
autoscaling: v1 v2
batch: v1 v1beta1
certificates.k8s.io: v1 v1alpha1 v1beta1
coordination.k8s.io: v1 v1alpha2 v1beta1
discovery.k8s.io: v1 v1beta1
events.k8s.io: v1 v1beta1
extensions: v1beta1
flowcontrol.apiserver.k8s.io: v1 v1beta1 v1beta2 v1beta3
internal.apiserver.k8s.io: v1alpha1
lifecycle.k8s.io: v1alpha1
networking.k8s.io: v1 v1beta1
node.k8s.io: v1 v1alpha1 v1beta1
policy: v1 v1beta1
rbac.authorization.k8s.io: v1 v1alpha1 v1beta1
resource.k8s.io: v1 v1alpha3 v1beta1 v1beta2
scheduling.k8s.io: v1 v1alpha3 v1beta1
storage.k8s.io: v1 v1alpha1 v1beta1
storagemigration.k8s.io: v1 v1beta1
`
