package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/builtin/volume"
)

// WarnOfTemplate returns warnings about a template at c, regardless of the old one.
func WarnOfTemplate(c *rule.Check, t, _ *corev1.PodTemplateSpec) {
	warnOf(c, &t.ObjectMeta, &t.Spec, warnOfSeccomp, warnOfAppArmor)
}

// warnOfPod returns warnings about a pod at c. Its AppArmor annotations are already fields.
func warnOfPod(c *rule.Check, meta *metav1.ObjectMeta, spec *corev1.PodSpec) {
	warnOf(c, meta, spec, warnOfSeccomp)
}

// warnOf adds warnings in the order of kube-apiserver, because only the first few thousand bytes
// are sent. ofAnnotations add warnings about the annotations of one container.
func warnOf(c *rule.Check, meta *metav1.ObjectMeta, spec *corev1.PodSpec, ofAnnotations ...func(annotations, *corev1.PodSpec, *corev1.Container)) {
	at := c.At("spec")
	notes := annotations{c.At("metadata", "annotations"), meta.Annotations}
	warnOfNodes(at, spec)
	notes.warn("scheduler.alpha.kubernetes.io/critical-pod", `non-functional in v1.16+; use the "priorityClassName" field instead`)
	notes.warn("security.alpha.kubernetes.io/sysctls", `non-functional in v1.11+; use the "sysctls" field instead`)
	notes.warn("security.alpha.kubernetes.io/unsafe-sysctls", `non-functional in v1.11+; use the "sysctls" field instead`)
	volume.Warn(at.At("volumes"), spec.Volumes)
	warnOfNames(at, spec)
	for _, name := range inBytes {
		warnOfFraction(at.At("overhead"), spec.Overhead, name)
	}
	if spec.SecurityContext == nil || spec.SecurityContext.SeccompProfile == nil {
		notes.warn(corev1.SeccompPodAnnotationKey, noSeccomp) //nolint:staticcheck // clients may still write it
	}
	eachContainer(at, spec, func(at *rule.Check, x *corev1.Container) {
		for _, warn := range ofAnnotations {
			warn(notes, spec, x)
		}
		warnOfFractions(at.At("resources"), &x.Resources)
		warnOfEnv(at, x.Env)
	})
	warnOfPorts(at, spec)
	warnOfPortNames(at, spec)
	if grace := spec.TerminationGracePeriodSeconds; grace != nil && *grace < 0 {
		c.Warn("%s: must be >= 0; negative values are invalid and will be treated as 1", at.At("terminationGracePeriodSeconds").Path())
	}
	warnOfPodAffinity(at.At("affinity"), spec.Affinity)
	warnOfAddresses(at, spec)
}

// warnOfNodes warns about deprecated ways to select nodes.
func warnOfNodes(c *rule.Check, spec *corev1.PodSpec) {
	for _, label := range kind.SortedKeys(spec.NodeSelector) {
		kind.WarnOfNodeLabel(c.At("nodeSelector").AtKey(label), label)
	}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		nodes, at := spec.Affinity.NodeAffinity, c.At("affinity", "nodeAffinity")
		if required := nodes.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			terms := at.At("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
			for i := range required.NodeSelectorTerms {
				kind.WarnOfNodeSelectorTerm(terms.At(i), &required.NodeSelectorTerms[i], false)
			}
		}
		for i := range nodes.PreferredDuringSchedulingIgnoredDuringExecution {
			term := &nodes.PreferredDuringSchedulingIgnoredDuringExecution[i]
			kind.WarnOfNodeSelectorTerm(at.At("preferredDuringSchedulingIgnoredDuringExecution", i, "preference"), &term.Preference, true)
		}
	}
	for i := range spec.TopologySpreadConstraints {
		at, s := c.At("topologySpreadConstraints", i), &spec.TopologySpreadConstraints[i]
		kind.WarnOfNodeKey(at.At("topologyKey"), s.TopologyKey)
		warnOfNoSelector(at, s.LabelSelector)
	}
}

func warnOfNoSelector(c *rule.Check, s *metav1.LabelSelector) {
	if s == nil {
		c.Warn("%s: a null labelSelector results in matching no pod", c.At("labelSelector").Path())
	}
}

func warnOfPodAffinity(c *rule.Check, affinity *corev1.Affinity) {
	if affinity == nil {
		return
	}
	terms := func(c *rule.Check, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			warnOfNoSelector(c.At("requiredDuringSchedulingIgnoredDuringExecution", i), required[i].LabelSelector)
		}
		for i := range preferred {
			warnOfNoSelector(c.At("preferredDuringSchedulingIgnoredDuringExecution", i, "podAffinityTerm"), preferred[i].PodAffinityTerm.LabelSelector)
		}
	}
	if a := affinity.PodAffinity; a != nil {
		terms(c.At("podAffinity"), a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		terms(c.At("podAntiAffinity"), a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

// annotations are the annotations of a pod, with their Check.
type annotations struct {
	check  *rule.Check
	values map[string]string
}

func (a annotations) warn(key, detail string) {
	if _, ok := a.values[key]; ok {
		a.check.Warn("%s: %s", a.check.AtKey(key).Path(), detail)
	}
}

const noSeccomp = `non-functional in v1.27+; use the "seccompProfile" field instead`

func warnOfSeccomp(notes annotations, _ *corev1.PodSpec, x *corev1.Container) {
	if x.SecurityContext == nil || x.SecurityContext.SeccompProfile == nil {
		notes.warn(corev1.SeccompContainerAnnotationKeyPrefix+x.Name, noSeccomp) //nolint:staticcheck // clients may still write it
	}
}

// warnOfAppArmor warns about an AppArmor annotation, unless a field of the pod or the container has
// a profile.
func warnOfAppArmor(notes annotations, spec *corev1.PodSpec, x *corev1.Container) {
	ofPod := spec.SecurityContext != nil && spec.SecurityContext.AppArmorProfile != nil
	own := x.SecurityContext != nil && x.SecurityContext.AppArmorProfile != nil
	if !ofPod && !own {
		notes.warn(corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+x.Name, `deprecated since v1.30; use the "appArmorProfile" field instead`)
	}
}

// warnOfNames warns about duplicates in lists that clients merge by name.
func warnOfNames(c *rule.Check, spec *corev1.PodSpec) {
	addresses, secrets := sets.New[string](), sets.New[string]()
	for i, a := range spec.HostAliases {
		if addresses.Has(a.IP) {
			c.Warn("%s: duplicate ip %q", c.At("hostAliases", i, "ip").Path(), a.IP)
		}
		addresses.Insert(a.IP)
	}
	for i, s := range spec.ImagePullSecrets {
		if secrets.Has(s.Name) {
			c.Warn("%s: duplicate name %q", c.At("imagePullSecrets", i, "name").Path(), s.Name)
		}
		secrets.Insert(s.Name)
	}
	for i, s := range spec.ImagePullSecrets {
		if s.Name == "" {
			c.Warn("%s: invalid empty name %q", c.At("imagePullSecrets", i, "name").Path(), s.Name)
		}
	}
}

// warnOfFractions warns about fractional bytes in resources at c.
func warnOfFractions(c *rule.Check, r *corev1.ResourceRequirements) {
	for _, name := range inBytes {
		warnOfFraction(c.At("limits"), r.Limits, name)
		warnOfFraction(c.At("requests"), r.Requests, name)
	}
}

// inBytes are the resources measured in bytes.
var inBytes = []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

func warnOfFraction(c *rule.Check, list corev1.ResourceList, name corev1.ResourceName) {
	if amount, ok := list[name]; ok && isFractional(amount) {
		c.Warn("%s: fractional byte value %q is invalid, must be an integer", c.AtKey(string(name)).Path(), amount.String())
	}
}

// warnOfEnv warns about variables that hide earlier ones. A variable may refer to the one it hides.
func warnOfEnv(c *rule.Check, vars []corev1.EnvVar) {
	names := sets.New[string]()
	for i, v := range vars {
		if names.Has(v.Name) && !extendsItself(&v) {
			c.Warn("%s: hides previous definition of %q, which may be dropped when using apply", c.At("env", i).Path(), v.Name)
		}
		names.Insert(v.Name)
	}
}

func extendsItself(v *corev1.EnvVar) bool {
	itself := "$(" + v.Name + ")"
	return v.ValueFrom == nil && v.Value != itself && strings.Contains(v.Value, itself)
}

// warnOfPorts warns about duplicate or overlapping ports.
func warnOfPorts(c *rule.Check, spec *corev1.PodSpec) {
	type place struct {
		port corev1.ContainerPort
		path fmt.Stringer
	}
	seen := map[string][]place{}
	eachContainer(c, spec, func(at *rule.Check, x *corev1.Container) {
		for i, p := range x.Ports {
			path := at.At("ports", i).Path()
			if p.HostIP != "" && p.HostPort == 0 {
				c.Warn("%s: hostIP set without hostPort: %+v", path, p)
			}
			key := fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol)
			for _, other := range seen[key] {
				if how := overlap(&p, &other.port); how != "" {
					c.Warn("%s: %s port definition with %s", path, how, other.path)
				}
			}
			seen[key] = append(seen[key], place{p, path})
		}
	})
}

// overlap describes the overlap of two definitions of a container port, or returns "".
func overlap(a, b *corev1.ContainerPort) string {
	switch {
	case a.HostIP == b.HostIP && a.HostPort == b.HostPort:
		return "duplicate"
	case a.HostPort == 0 || b.HostPort == 0:
		return "overlapping"
	case a.HostPort == b.HostPort && (a.HostIP == "" || b.HostIP == ""):
		return "dangerously ambiguous"
	}
	return ""
}

func warnOfPortNames(c *rule.Check, spec *corev1.PodSpec) {
	first := map[string]fmt.Stringer{}
	eachContainer(c, spec, func(at *rule.Check, x *corev1.Container) {
		for i, p := range x.Ports {
			path := at.At("ports", i).Path()
			switch other, ok := first[p.Name]; {
			case p.Name == "":
			case ok:
				c.Warn("%s: duplicate port name %q with %s, services and probes that select ports by name will use %s", path, p.Name, other, other)
			default:
				first[p.Name] = path
			}
		}
	})
}

// warnOfAddresses warns about IP addresses that programs parse differently.
func warnOfAddresses(c *rule.Check, spec *corev1.PodSpec) {
	if spec.DNSConfig != nil {
		for i, server := range spec.DNSConfig.Nameservers {
			c.AddWarnings(validation.GetWarningsForIP(c.At("dnsConfig", "nameservers", i).Path(), server)...)
		}
	}
	for i, a := range spec.HostAliases {
		c.AddWarnings(validation.GetWarningsForIP(c.At("hostAliases", i, "ip").Path(), a.IP)...)
	}
}
