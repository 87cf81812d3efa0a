package pod

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// A podContext is what the rules of containers have to know of the pod, or of the template
// of one, that they are in.
type podContext struct {
	// spec is what the containers are in.
	spec *corev1.PodSpec
	// isPod tells a pod from a template, which may be what no pod may be.
	isPod bool
	// keeps is what spec may have because what it takes the place of had it.
	keeps kept

	at      *rule.Check // looks at spec
	volumes map[string]*corev1.Volume
}

// kept has what is not valid in a new spec.
type kept struct {
	indivisibleHugePages bool // amounts that are no multiple of the size of a page
	restartOnResize      bool // of init containers that are no sidecars
	sysAdmin             bool // although privileges may not escalate
}

// giveContext gives the rules of containers what they have to know of a spec, at which c
// looks. old is what it takes the place of, or nil. Who walks over a spec calls it before,
// for pods and templates alike.
func giveContext(c *rule.Check, spec, old *corev1.PodSpec, isPod bool) {
	rule.With(c, &podContext{spec: spec, isPod: isPod, keeps: keptOf(old), at: c})
}

// volume returns the first volume of a name that has no errors, or nil. The walk checks
// volumes before containers.
func (p *podContext) volume(name string) *corev1.Volume {
	if p.volumes == nil && p.spec != nil {
		p.volumes = map[string]*corev1.Volume{}
		wrong := p.wrongVolumes()
		for i := range p.spec.Volumes {
			if v := &p.spec.Volumes[i]; p.volumes[v.Name] == nil && !wrong(i) {
				p.volumes[v.Name] = v
			}
		}
	}
	return p.volumes[name]
}

// wrongVolumes returns a function that reports whether a volume has errors.
func (p *podContext) wrongVolumes() func(int) bool {
	var fields []string
	all := p.at.At("volumes").Path().String() + "["
	for _, e := range p.at.Errors() {
		if strings.HasPrefix(e.Field, all) {
			fields = append(fields, e.Field)
		}
	}
	return func(i int) bool {
		prefix := p.at.At("volumes", i).Path().String()
		for _, f := range fields {
			if strings.HasPrefix(f, prefix) {
				return true
			}
		}
		return false
	}
}

// hostUsers reports whether the users of the containers are those of the host.
func (p *podContext) hostUsers() bool {
	return p.spec == nil || p.spec.HostUsers == nil || *p.spec.HostUsers
}

// keptOf returns what is not valid in a new spec, but in an old one.
func keptOf(old *corev1.PodSpec) (k kept) {
	if old == nil {
		return k
	}
	for name, quantity := range old.Overhead {
		k.indivisibleHugePages = k.indivisibleHugePages || !isDivisible(name, quantity)
	}
	for c := range containersOf(old) {
		for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
			for name, quantity := range list {
				k.indivisibleHugePages = k.indivisibleHugePages || !isDivisible(name, quantity)
			}
		}
		sc := c.SecurityContext
		k.sysAdmin = k.sysAdmin || sc != nil && addsSysAdmin(sc) && !isTrue(sc.AllowPrivilegeEscalation)
	}
	for i := range old.InitContainers {
		c := &old.InitContainers[i]
		k.restartOnResize = k.restartOnResize || !isSidecar(c) && restartsOnResize(c)
	}
	return k
}
