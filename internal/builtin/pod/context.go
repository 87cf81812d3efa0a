package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/builtin/volume"
)

// A podContext is what the rules of containers have to know of the pod, or of the template
// of one, that they are in.
type podContext struct {
	// spec is what the containers are in.
	spec corev1.PodSpec
	// isPod tells a pod from a template, which may be what no pod may be.
	isPod bool
	// allowed is what spec may have because what it takes the place of had it.
	allowed allowances

	// volumes are those of spec that are valid, by name.
	volumes map[string]*corev1.Volume
}

// allowances are of what is not valid in a new spec.
type allowances struct {
	indivisibleHugePages bool // amounts that are no multiple of the size of a page
	restartOnResize      bool // of init containers that are no sidecars
	sysAdmin             bool // where privileges may not escalate
	volumeDevices        bool // where the users are not those of the host
}

// giveContext finds what is wrong with the volumes of a spec, at which c looks, and gives
// the rules of containers what they have to know of the spec. old is what it takes the
// place of, or nil; pod is the name of the pod, "" in a template. Who walks over a spec
// calls it before.
func giveContext(c *rule.Check, spec, old *corev1.PodSpec, pod string) {
	var oldVolumes []corev1.Volume
	if old != nil {
		oldVolumes = old.Volumes
	}
	rule.With(c, &podContext{
		spec: *spec, isPod: pod != "", allowed: allowancesOf(old),
		volumes: volume.Validate(c.At("volumes"), spec.Volumes, oldVolumes, pod),
	})
}

// hostUsers reports whether the users of the containers are those of the host.
func hostUsers(spec *corev1.PodSpec) bool { return spec.HostUsers == nil || *spec.HostUsers }

// os returns the name of the operating system, "" where the spec does not say.
func (p *podContext) os() corev1.OSName {
	if p.spec.OS == nil {
		return ""
	}
	return p.spec.OS.Name
}

// allowancesOf returns what is not valid in a new spec, but in the place of an old one.
func allowancesOf(old *corev1.PodSpec) (a allowances) {
	if old == nil {
		return a
	}
	for name, amount := range old.Overhead {
		a.indivisibleHugePages = a.indivisibleHugePages || !isDivisible(name, amount)
	}
	for x := range containersOf(old) {
		for _, list := range []corev1.ResourceList{x.Resources.Limits, x.Resources.Requests} {
			for name, amount := range list {
				a.indivisibleHugePages = a.indivisibleHugePages || !isDivisible(name, amount)
			}
		}
		if sc := x.SecurityContext; sc != nil && addsSysAdmin(sc) && !isTrue(sc.AllowPrivilegeEscalation) {
			a.sysAdmin = true
		}
		a.volumeDevices = a.volumeDevices || !hostUsers(old) && len(x.VolumeDevices) > 0
	}
	for i := range old.InitContainers {
		x := &old.InitContainers[i]
		a.restartOnResize = a.restartOnResize || !isSidecar(x) && restartsOnResize(x)
	}
	return a
}
