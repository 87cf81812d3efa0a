package kind

import (
	"fmt"
	"strings"
	"sync"
)

// A priority has the position of a group in discovery, and those of its versions.
type priority struct {
	group    int
	versions map[string]int
}

// table has the priorities of Kubernetes' own groups and their versions. "core" is the group "".
// The APIServices of the groups have the same ones, so the order of discovery does not depend on
// whether they exist. An APIService may have at most 20000. A version without a priority gets no
// APIService.
const table = `
apiregistration.k8s.io 20001
core 18000 v1=1
apps 17800 v1=15
events.k8s.io 17750 v1=15 v1beta1=5
authentication.k8s.io 17700 v1=15 v1beta1=9 v1alpha1=1
authorization.k8s.io 17600 v1=15
autoscaling 17500 v1=15 v2=30
batch 17400 v1=15 v1beta1=9
certificates.k8s.io 17300 v1=15 v1beta1=9 v1alpha1=1
networking.k8s.io 17200 v1=15 v1beta1=9
policy 17100 v1=15 v1beta1=9
rbac.authorization.k8s.io 17000 v1=15
storage.k8s.io 16800 v1=15 v1beta1=9 v1alpha1=1
apiextensions.k8s.io 16700 v1=15
admissionregistration.k8s.io 16700 v1=15 v1beta1=12 v1alpha1=9
scheduling.k8s.io 16600 v1=15 v1beta1=9 v1alpha3=3
coordination.k8s.io 16500 v1=15 v1beta1=13 v1alpha2=12
node.k8s.io 16300 v1=15 v1beta1=9 v1alpha1=1
discovery.k8s.io 16200 v1=15 v1beta1=12
resource.k8s.io 16200 v1=21 v1beta2=15 v1beta1=9 v1alpha3=1
flowcontrol.apiserver.k8s.io 16100 v1=21 v1beta3=18 v1beta2=15 v1beta1=12 v1alpha1=9
internal.apiserver.k8s.io 16000 v1alpha1=9
storagemigration.k8s.io 15800 v1=15 v1beta1=9
lifecycle.k8s.io 15700 v1alpha1=1
`

// priorities returns the table by group.
var priorities = sync.OnceValue(func() map[string]priority {
	out := map[string]priority{}
	for line := range strings.Lines(strings.TrimSpace(table)) {
		words := strings.Fields(line)
		p := priority{versions: map[string]int{}}
		scan(words[1], &p.group)
		for _, w := range words[2:] {
			version, n, _ := strings.Cut(w, "=")
			var position int
			scan(n, &position)
			p.versions[version] = position
		}
		out[strings.TrimPrefix(words[0], "core")] = p
	}
	return out
})

func scan(s string, to *int) {
	if _, err := fmt.Sscan(s, to); err != nil {
		panic(err)
	}
}
