package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/builtin/volume"
)

// A podContext is the pod or the template of containers, for their rules.
type podContext struct {
	// spec is the spec of the containers.
	spec corev1.PodSpec
	// isPod is false for a template, which has fewer rules.
	isPod bool
	// allowed are exceptions for values of the old spec.
	allowed allowances

	// volumes are the valid volumes of spec, by name.
	volumes map[string]*corev1.Volume
}

// allowances are exceptions from rules for a new spec.
type allowances struct {
	indivisibleHugePages bool // amounts that are not a multiple of the page size
	restartOnResize      bool // in init containers that are not sidecars
	sysAdmin             bool // with allowPrivilegeEscalation: false
	volumeDevices        bool // in a user namespace
}

// giveContext validates the volumes of a spec at c, and sets the podContext for the rules of
// containers. old is the replaced spec, or nil; pod is the name of the pod, "" in a template. It
// must precede a walk over the spec.
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

// hostUsers reports whether the pod uses the user namespace of the host.
func hostUsers(spec *corev1.PodSpec) bool { return spec.HostUsers == nil || *spec.HostUsers }

// os returns the operating system of the spec, or "".
func (p *podContext) os() corev1.OSName {
	if p.spec.OS == nil {
		return ""
	}
	return p.spec.OS.Name
}

// allowancesOf returns the exceptions for an update of old.
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
