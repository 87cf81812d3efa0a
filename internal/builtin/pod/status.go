package pod

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

const notNegative = "must be a non-negative integer"

// validateStatus validates an update of the status.
func validateStatus(c *rule.Check, pod, old *corev1.Pod) {
	checkAnnotationUpdate(c, pod, old)
	c = c.At("status")
	now, was := &pod.Status, &old.Status
	checkConditions(c.At("conditions"), now.Conditions)
	if node := now.NominatedNodeName; node != "" && node != was.NominatedNodeName {
		at := c.At("nominatedNodeName")
		at.Invalids(node, apivalidation.NameIsDNSSubdomain(node, false))
		if old.Spec.NodeName != "" && c.Gates.On(gate.ClearingNominatedNodeNameAfterBinding) {
			at.Forbidden("may not be set on pods that are already bound to a node")
		}
	}
	if now.ObservedGeneration < 0 {
		c.At("observedGeneration").Invalid(now.ObservedGeneration, notNegative)
	}
	if now.QOSClass != was.QOSClass {
		c.At("qosClass").Invalid(now.QOSClass, "field is immutable")
	}
	checkClaimStatuses(c, pod)
	checkExtendedClaim(c.At("extendedResourceClaimStatus"), pod)
	checkAllocatable(c.At("nodeAllocatableResourceClaimStatuses"), pod, was.NodeAllocatableResourceClaimStatuses)
	checkIPs(c, now, was)
	checkVolumeHealth(c.At("volumeHealth"), now.VolumeHealth, pod.Spec.Volumes)
	all := !couldAllRestart(&old.Spec)
	rules := c.Gates.On(gate.ContainerRestartRules) || restartsByRules(&old.Spec)
	for _, list := range []struct {
		name       string
		now, was   []corev1.ContainerStatus
		containers []corev1.Container
		ephemeral  bool
	}{
		{"containerStatuses", now.ContainerStatuses, was.ContainerStatuses, old.Spec.Containers, false},
		{"initContainerStatuses", now.InitContainerStatuses, was.InitContainerStatuses, old.Spec.InitContainers, false},
		{"ephemeralContainerStatuses", now.EphemeralContainerStatuses, was.EphemeralContainerStatuses, nil, true},
	} {
		at := c.At(list.name)
		if all || list.ephemeral {
			checkEnded(at, list.now, list.was, &restarting{list.containers, old.Spec.RestartPolicy, list.ephemeral || rules})
		}
		for i := range list.now {
			s := &list.now[i]
			checkUser(at.At(i, "user", "linux"), s.User, pod.Spec.OS)
			for j, m := range s.VolumeMounts {
				if m.VolumeStatus != nil && m.VolumeStatus.Image != nil {
					at.Walk(m.VolumeStatus.Image, i, "volumeMounts", j, "volumeStatus", "imageVolumeStatus")
				}
			}
			if list.ephemeral && len(s.AllocatedResourcesStatus) > 0 {
				at.At(i, "allocatedResourcesStatus").Forbidden("must not be specified in container status")
			} else {
				checkHealth(at.At(i, "allocatedResourcesStatus"), s, list.containers, now.ExtendedResourceClaimStatus)
			}
		}
	}
}

// checkVolumeHealth validates the health of volumes of a pod.
func checkVolumeHealth(c *rule.Check, all []corev1.PodVolumeHealth, volumes []corev1.Volume) {
	for i := range all {
		health := &all[i]
		c.Walk(health, i)
		named := func(v corev1.Volume) bool { return v.Name == health.Name }
		if health.Name != "" && !slices.ContainsFunc(volumes, named) {
			notFound(c.At(i, "name"), health.Name)
		}
		if slices.ContainsFunc(all[:i], func(h corev1.PodVolumeHealth) bool { return h.Name == health.Name }) {
			c.At(i).Duplicate(*health)
		}
	}
}

func checkConditions(c *rule.Check, conditions []corev1.PodCondition) {
	for i, x := range conditions {
		if x.ObservedGeneration < 0 {
			c.At(i, "observedGeneration").Invalid(x.ObservedGeneration, notNegative)
		}
		switch x.Type {
		case corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized:
		default:
			c.At(i, "Type").Invalids(string(x.Type), validation.IsQualifiedName(string(x.Type)))
		}
	}
}

// couldAllRestart reports whether a container of a pod may restart all containers.
func couldAllRestart(spec *corev1.PodSpec) bool {
	for x := range containersOf(spec) {
		for _, r := range x.RestartPolicyRules {
			if r.Action == corev1.ContainerRestartRuleActionRestartAllContainers {
				return true
			}
		}
	}
	return false
}

// restartsByRules reports whether containers of a pod have restart policies of their own, besides sidecars.
func restartsByRules(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Containers, func(x corev1.Container) bool { return x.RestartPolicy != nil }) ||
		slices.ContainsFunc(spec.InitContainers, func(x corev1.Container) bool {
			return x.RestartPolicy != nil && !isSidecar(&x) || len(x.RestartPolicyRules) > 0
		})
}

// A restarting decides whether terminated containers of a pod may run again.
type restarting struct {
	containers []corev1.Container
	policy     corev1.RestartPolicy // of the pod
	onlyKnown  bool                 // containers that the pod does not have may not
}

// after reports whether a container may run again after it terminated.
func (r *restarting) after(name string, code int32) bool {
	i := slices.IndexFunc(r.containers, func(x corev1.Container) bool { return x.Name == name })
	if i < 0 {
		return !r.onlyKnown && restartsAfter(&corev1.Container{}, r.policy, code)
	}
	return restartsAfter(&r.containers[i], r.policy, code)
}

// checkEnded rejects a terminated container that runs again although it must not restart.
func checkEnded(c *rule.Check, now, was []corev1.ContainerStatus, may *restarting) {
	for i := range was {
		ended := was[i].State.Terminated
		if ended == nil {
			continue
		}
		runs := slices.ContainsFunc(now, func(s corev1.ContainerStatus) bool { return s.Name == was[i].Name && s.State.Terminated == nil })
		if runs && !may.after(was[i].Name, ended.ExitCode) {
			c.At(i, "state").Forbidden("may not be transitioned to non-terminated state")
		}
	}
}

// restartsAfter reports whether a terminated container restarts: by its rules, its policy, or the
// policy of the pod.
func restartsAfter(x *corev1.Container, policy corev1.RestartPolicy, code int32) bool {
	if x.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*x.RestartPolicy)
		for _, r := range x.RestartPolicyRules {
			if e := r.ExitCodes; e != nil && slices.Contains(e.Values, code) == (e.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
				return true
			}
		}
	}
	return policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && code != 0
}

func checkUser(c *rule.Check, user *corev1.ContainerUser, os *corev1.PodOS) {
	switch {
	case user == nil || user.Linux == nil:
	case os != nil && os.Name == corev1.Windows:
		c.Forbidden("cannot be set for a windows pod")
	case os == nil || os.Name == corev1.Linux:
		if user.Linux.UID < 0 || user.Linux.UID > math.MaxUint32 {
			c.At("uid").Invalid(user.Linux.UID, fmt.Sprintf("must be between 0 and %d, inclusive", int64(math.MaxUint32)))
		}
		c.At("gid").Invalids(user.Linux.GID, validation.IsValidGroupID(user.Linux.GID))
		for i, id := range user.Linux.SupplementalGroups {
			c.At("supplementalGroups", i).Invalids(id, validation.IsValidGroupID(id))
		}
	}
}

// checkHealth validates the health of allocated resources of a container.
func checkHealth(c *rule.Check, s *corev1.ContainerStatus, containers []corev1.Container, extended *corev1.PodExtendedResourceClaimStatus) {
	k := slices.IndexFunc(containers, func(x corev1.Container) bool { return x.Name == s.Name })
	for i, r := range s.AllocatedResourcesStatus {
		at := c.At(i)
		if k >= 0 {
			checkAllocated(at.At("name"), r.Name, &containers[k], extended)
		}
		ids := sets.New[corev1.ResourceID]()
		for j, h := range r.Resources {
			at := at.At("resources", j)
			known(at.At("health"), h.Health, corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy, corev1.ResourceHealthStatusUnknown)
			switch message := h.Message; {
			case message == nil:
			case *message == "":
				at.At("message").Required("must be non-empty if specified")
			case len(*message) > corev1.ResourceHealthMessageMaxLength:
				at.At("message").TooLong(corev1.ResourceHealthMessageMaxLength)
			}
			if ids.Has(h.ResourceID) {
				at.At("resourceID").Duplicate(h.ResourceID)
			}
			ids.Insert(h.ResourceID)
		}
	}
}

// checkAllocated rejects the name of a resource that a container does not request.
func checkAllocated(c *rule.Check, name corev1.ResourceName, x *corev1.Container, extended *corev1.PodExtendedResourceClaimStatus) {
	claim, ok := strings.CutPrefix(string(name), "claim:")
	if !ok {
		if _, asked := x.Resources.Requests[name]; !asked {
			c.Invalid(name, "must match one of the container's resource requests")
		}
		return
	}
	of, request, hasRequest := strings.Cut(claim, "/")
	for _, asked := range x.Resources.Claims {
		if asked.Name == of && asked.Request == request && hasRequest == (request != "") {
			return
		}
	}
	if extended != nil && of != "" && request != "" && of == extended.ResourceClaimName {
		for _, m := range extended.RequestMappings {
			amount := x.Resources.Requests[corev1.ResourceName(m.ResourceName)]
			if m.ContainerName == x.Name && m.RequestName == request && !amount.IsZero() {
				return
			}
		}
	}
	c.Invalid(name, "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty")
}

func checkClaimStatuses(c *rule.Check, pod *corev1.Pod) {
	names := sets.New[string]()
	for i, s := range pod.Status.ResourceClaimStatuses {
		at := c.At("resourceClaimStatuses", i)
		if !slices.ContainsFunc(pod.Spec.ResourceClaims, func(x corev1.PodResourceClaim) bool { return x.Name == s.Name }) {
			at.At("name").Invalid(s.Name, "must match the name of an entry in `spec.resourceClaims`")
		}
		if names.Has(s.Name) {
			at.At("name").Duplicate(s.Name)
		}
		names.Insert(s.Name)
		if n := s.ResourceClaimName; n != nil {
			at.At("resourceClaimName").Invalids(*n, apivalidation.NameIsDNSSubdomain(*n, false))
		}
	}
}

// checkExtendedClaim validates the status of the claim for extended resources.
func checkExtendedClaim(c *rule.Check, pod *corev1.Pod) {
	s := pod.Status.ExtendedResourceClaimStatus
	if s == nil {
		return
	}
	if len(s.RequestMappings) == 0 {
		c.At("requestMappings").Required("at least one request mapping is required")
	}
	containers := map[string]*corev1.Container{}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			containers[list[i].Name] = &list[i]
		}
	}
	seen := sets.New[corev1.ContainerExtendedResourceRequest]()
	for i, m := range s.RequestMappings {
		at := c.At("requestMappings", i)
		if x := containers[m.ContainerName]; x == nil {
			at.At("containerName").Invalid(m.ContainerName, "must match the name of an entry in spec.initContainers.name or spec.containers.name")
		} else if _, ok := x.Resources.Requests[corev1.ResourceName(m.ResourceName)]; !ok {
			at.At("resourceName").Invalid(m.ResourceName, "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests")
		}
		c.At("requestName").Invalids(m.RequestName, validation.IsDNS1123Label(m.RequestName))
		if seen.Has(m) {
			at.At("containerName").Duplicate(m.ContainerName)
			at.At("resourceName").Duplicate(m.ResourceName)
			at.At("requestName").Duplicate(m.RequestName)
		}
		seen.Insert(m)
	}
	if at := c.At("resourceClaimName"); s.ResourceClaimName == "" {
		at.Required("")
	} else {
		at.Invalids(s.ResourceClaimName, apivalidation.NameIsDNSSubdomain(s.ResourceClaimName, false))
	}
}

// checkIPs validates the addresses of a pod and its node. Old values may stay.
func checkIPs(c *rule.Check, now, was *corev1.PodStatus) {
	var ips, old []string
	for _, ip := range now.PodIPs {
		ips = append(ips, ip.IP)
	}
	for _, ip := range was.PodIPs {
		old = append(old, ip.IP)
	}
	at := c.At("podIPs")
	checkFamilies(at, now.PodIPs, ips, old)
	switch {
	case (now.PodIP == "") != (len(ips) == 0):
		at.Invalid(now.PodIPs, "podIP and podIPs must either both be set or both be unset")
	case len(ips) > 0 && now.PodIP != ips[0]:
		at.At(0, "ip").Invalid(ips[0], "must be equal to `podIP`")
	}
	ips, old = nil, nil
	for _, ip := range now.HostIPs {
		ips = append(ips, ip.IP)
	}
	for _, ip := range was.HostIPs {
		old = append(old, ip.IP)
	}
	at = c.At("hostIPs")
	if len(ips) > 0 && now.HostIP != ips[0] {
		at.At(0, "ip").Invalid(ips[0], "must be equal to `hostIP`")
	}
	checkFamilies(at, now.HostIPs, ips, old)
}

// checkFamilies rejects invalid addresses, and several of one family.
func checkFamilies(c *rule.Check, shown any, ips, old []string) {
	for i, ip := range ips {
		c.Add(kind.ValidateLegacyIP(c.Gates, c.At(i).Path(), ip, old)...)
	}
	if len(ips) < 2 {
		return
	}
	dual, err := netutils.IsDualStackIPStrings(ips)
	if err != nil {
		c.Add(field.InternalError(c.Path(), fmt.Errorf("failed to check for dual stack with error:%w", err)))
	}
	if !dual || len(ips) > 2 {
		c.Invalid(shown, "may specify no more than one IP for each IP family")
	}
}

// warnStatus warns about addresses that parsers interpret differently.
func warnStatus(c *rule.Check, pod, _ *corev1.Pod) {
	for i, ip := range pod.Status.PodIPs {
		c.AddWarnings(kind.WarnOfIP(c.At("status", "podIPs", i, "ip").Path(), ip.IP)...)
	}
	for i, ip := range pod.Status.HostIPs {
		c.AddWarnings(kind.WarnOfIP(c.At("status", "hostIPs", i, "ip").Path(), ip.IP)...)
	}
}
