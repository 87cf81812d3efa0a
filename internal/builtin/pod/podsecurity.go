package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

// checkPodSecurity validates the security context of a pod.
func checkPodSecurity(c *rule.Check, s *corev1.PodSecurityContext) {
	check := func(name string, id *int64, valid func(int64) []string) {
		if id != nil {
			c.At(name).Invalids(*id, valid(*id))
		}
	}
	check("fsGroup", s.FSGroup, validation.IsValidGroupID)
	check("runAsUser", s.RunAsUser, validation.IsValidUserID)
	check("runAsGroup", s.RunAsGroup, validation.IsValidGroupID)
	for i, id := range s.SupplementalGroups {
		c.At("supplementalGroups", i).Invalids(id, validation.IsValidGroupID(id))
	}
	if p := s.FSGroupChangePolicy; p != nil {
		known(c.At("fsGroupChangePolicy"), *p, corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)
	}
	if p := s.SupplementalGroupsPolicy; p != nil {
		known(c.At("supplementalGroupsPolicy"), *p, corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)
	}
	if p := s.SELinuxChangePolicy; p != nil {
		policies := []corev1.PodSELinuxChangePolicy{corev1.SELinuxChangePolicyMountOption, corev1.SELinuxChangePolicyRecursive}
		if !c.Gates.On(gate.SELinuxMount) && !rule.Given[inherited](c).anySELinux {
			policies = policies[1:]
		}
		known(c.At("seLinuxChangePolicy"), *p, policies...)
	}
}

const (
	maxSysctl     = 253
	sysctlSegment = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
)

var sysctlName = rule.Pattern("^(" + sysctlSegment + `[\./])*` + sysctlSegment + "$")

// checkSysctls validates the sysctls of a pod. Those of shared host namespaces are forbidden.
func checkSysctls(c *rule.Check, spec *corev1.PodSpec) {
	if spec.SecurityContext == nil {
		return
	}
	names := sets.New[string]()
	for i, s := range spec.SecurityContext.Sysctls {
		at := c.At(i, "name")
		switch {
		case s.Name == "":
			at.Required("")
		case len(s.Name) > maxSysctl || !sysctlName().MatchString(s.Name):
			at.Invalid(s.Name, fmt.Sprintf("must have at most %d characters and match regex %s", maxSysctl, sysctlName()))
		case names.Has(s.Name):
			at.Duplicate(s.Name)
		}
		names.Insert(s.Name)
		if shared := sharedNamespace(spec, s.Name); shared != "" && !rule.Given[inherited](c).sysctls {
			at.Invalid(s.Name, fmt.Sprintf("may not be specified when '%s' is true", shared))
		}
	}
}

// ofIPC are the sysctls of IPC namespaces, beside those of message queues.
var ofIPC = sets.New(
	"kernel.sem", "kernel.shm", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced",
	"kernel.msg", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni",
)

// sharedNamespace returns the field that shares the namespace of a sysctl with the host, or "".
func sharedNamespace(spec *corev1.PodSpec, sysctl string) string {
	// A name with slashes may have dots in its parts.
	if i := strings.IndexAny(sysctl, "./"); i >= 0 && sysctl[i] == '/' {
		sysctl = strings.NewReplacer(".", "/", "/", ".").Replace(sysctl)
	}
	sysctl, _, _ = strings.Cut(sysctl, "*")
	switch {
	case spec.HostNetwork && strings.HasPrefix(sysctl, "net."):
		return "hostNetwork"
	case spec.HostIPC && (ofIPC.Has(sysctl) || strings.HasPrefix(sysctl, "fs.mqueue.")):
		return "hostIPC"
	}
	return ""
}

// checkOwnUsers rejects host namespaces in a pod with a user namespace.
func checkOwnUsers(c *rule.Check, spec *corev1.PodSpec) {
	const detail = "when `hostUsers` is false"
	if spec.HostNetwork && !c.Gates.On(gate.UserNamespacesHostNetworkSupport) && !rule.Given[inherited](c).ownUsers {
		c.At("hostNetwork").Forbidden(detail)
	}
	if spec.HostPID {
		c.At("HostPID").Forbidden(detail)
	}
	if spec.HostIPC {
		c.At("HostIPC").Forbidden(detail)
	}
}

// checkHostProcesses checks that all containers of a pod are HostProcess containers if one is, and
// that the pod uses the host network.
func checkHostProcesses(c *rule.Check, spec *corev1.PodSpec) {
	ofPod := hostProcess(nil)
	if spec.SecurityContext != nil {
		ofPod = hostProcess(spec.SecurityContext.WindowsOptions)
	}
	all, some := true, false
	check := func(at *rule.Check, x *corev1.Container) {
		is := ofPod
		if x.SecurityContext != nil {
			if own := hostProcess(x.SecurityContext.WindowsOptions); own != nil {
				if ofPod != nil && *ofPod != *own {
					at.At("securityContext", "windowsOptions", "hostProcess").
						Invalid(*own, fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", *ofPod))
				}
				is = own
			}
		}
		all, some = all && isTrue(is), some || isTrue(is)
	}
	eachContainer(c, spec, check)
	if !some {
		return
	}
	if !all {
		c.Invalid("", "If pod contains any hostProcess containers then all containers must be HostProcess containers")
	}
	if !spec.HostNetwork {
		c.At("hostNetwork").Invalid(false, "hostNetwork must be true if pod contains any hostProcess containers")
	}
	if !rule.Given[Policy](c).Privileged {
		c.Forbidden("hostProcess containers are disallowed by cluster policy")
	}
}

func hostProcess(o *corev1.WindowsSecurityContextOptions) *bool {
	if o == nil {
		return nil
	}
	return o.HostProcess
}

// checkOS rejects fields of a pod that do not apply to its operating system. Those of containers
// have their own rules.
func checkOS(c *rule.Check, spec *corev1.PodSpec) {
	if spec.OS == nil {
		return
	}
	sc := spec.SecurityContext
	if sc == nil {
		sc = &corev1.PodSecurityContext{}
	}
	switch spec.OS.Name {
	case "":
		c.At("os", "name").Required("")
	case corev1.Linux:
		if sc.WindowsOptions != nil {
			c.At("securityContext", "windowsOptions").Forbidden("windows options cannot be set for a linux pod")
		}
	case corev1.Windows:
		forbid := func(at *rule.Check, name string, isSet bool) {
			if isSet {
				at.At(name).Forbidden("cannot be set for a windows pod")
			}
		}
		at := c.At("securityContext")
		forbid(at, "appArmorProfile", sc.AppArmorProfile != nil)
		forbid(at, "seLinuxOptions", sc.SELinuxOptions != nil)
		forbid(at, "seccompProfile", sc.SeccompProfile != nil)
		forbid(at, "fsGroup", sc.FSGroup != nil)
		forbid(at, "fsGroupChangePolicy", sc.FSGroupChangePolicy != nil)
		forbid(at, "sysctls", len(sc.Sysctls) > 0)
		forbid(at, "runAsUser", sc.RunAsUser != nil)
		forbid(at, "runAsGroup", sc.RunAsGroup != nil)
		forbid(at, "supplementalGroups", sc.SupplementalGroups != nil)
		forbid(at, "supplementalGroupsPolicy", sc.SupplementalGroupsPolicy != nil)
		forbid(at, "seLinuxChangePolicy", sc.SELinuxChangePolicy != nil)
		forbid(c, "hostUsers", spec.HostUsers != nil)
		forbid(c, "hostPID", spec.HostPID)
		forbid(c, "hostIPC", spec.HostIPC)
		forbid(c, "shareProcessNamespace", spec.ShareProcessNamespace != nil)
	default:
		rule.NotSupported(c.At("os"), spec.OS.Name, corev1.Linux, corev1.Windows)
	}
}
