package pod

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

// containerRules are the rules and defaults for types in containers. They read the rest of the
// spec, such as volumes and the operating system, from the podContext.
//
// An ephemeral container has the fields of a Container in an EphemeralContainerCommon, and Go
// converts one to the other: both share the same functions.
var containerRules = rule.All(
	rule.On(checkContainer),
	rule.On(checkEphemeral),
	rule.Apart[corev1.Probe](), // see checkRuntime
	rule.On(checkProbe),
	rule.On(checkSecurityContext),
	rule.On(checkSeccompProfile),
	rule.On(checkAppArmorProfile),
	rule.On(checkWindowsOptions),
	rule.Default[corev1.Container](defaultContainer),
	rule.Default[corev1.EphemeralContainerCommon](defaultContainer),
)

// checkContainerLists validates the containers of a spec at c together, and the rules that depend
// on the list of a container. The walk applies the rules for any container.
func checkContainerLists(c *rule.Check, spec *corev1.PodSpec) {
	if len(spec.Containers) == 0 {
		c.At("containers").Required("")
	}
	names, ports := sets.New[string](), sets.New[string]()
	for i := range spec.Containers {
		x, at := &spec.Containers[i], c.At("containers", i)
		checkName(at, x.Name, names)
		checkRuntime(at, x, spec)
		checkRestartPolicy(at, x)
		checkHostPorts(at, x, ports)
	}
	for i := range spec.InitContainers {
		x, at := &spec.InitContainers[i], c.At("initContainers", i)
		checkInit(at, x, spec)
		if x.Name != "" || names.Has("") {
			checkName(at, x.Name, names)
		}
		// They run in sequence, and errors name the first.
		checkHostPorts(c.At("initContainers", 0), x, sets.New[string]())
	}
	targets := names.Clone()
	for i := range spec.EphemeralContainers {
		x, at := &spec.EphemeralContainers[i], c.At("ephemeralContainers", i)
		checkName(at, x.Name, names)
		if x.TargetContainerName != "" && !targets.Has(x.TargetContainerName) {
			notFound(at.At("targetContainerName"), x.TargetContainerName)
		}
	}
	if spec.Resources != nil && c.Gates.On(gate.PodLevelResources) {
		checkPodResources(c.At("resources"), spec)
	}
}

func checkName(c *rule.Check, name string, others sets.Set[string]) {
	if others.Has(name) {
		c.At("name").Duplicate(name)
	}
	others.Insert(name)
}

// checkHostPorts rejects host ports that other containers have.
func checkHostPorts(c *rule.Check, x *corev1.Container, others sets.Set[string]) {
	for i, p := range x.Ports {
		if p.HostPort == 0 {
			continue
		}
		port := fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort)
		if others.Has(port) {
			c.At("ports", i, "hostPort").Duplicate(port)
		}
		others.Insert(port)
	}
}

func checkInit(c *rule.Check, x *corev1.Container, spec *corev1.PodSpec) {
	switch {
	case x.RestartPolicy != nil && (!isSidecar(x) || mayRestartAll(c)):
		checkRestartPolicy(c, x)
	case len(x.RestartPolicyRules) == 0:
	case x.RestartPolicy == nil:
		c.At("restartPolicy").Required(noRestartPolicy)
	default:
		c.At("restartPolicyRules").Forbidden("restartPolicyRules are not allowed for init containers with restart policy Always")
	}
	if isSidecar(x) {
		checkRuntime(c, x, spec)
		return
	}
	forbid := func(name string, isThere bool) {
		if isThere {
			c.At(name).Forbidden("may not be set for init containers without restartPolicy=Always")
		}
	}
	forbid("lifecycle", x.Lifecycle != nil)
	forbid("livenessProbe", x.LivenessProbe != nil)
	forbid("readinessProbe", x.ReadinessProbe != nil)
	forbid("startupProbe", x.StartupProbe != nil)
	if rule.Given[podContext](c).allowed.restartOnResize {
		return
	}
	for i, p := range x.ResizePolicy {
		if p.RestartPolicy == corev1.RestartContainer {
			c.At("resizePolicy", i, "restartPolicy").
				Invalid(p.RestartPolicy, "must not be set to 'RestartContainer' for non-sidecar initContainers")
		}
	}
}

const noRestartPolicy = "must specify restartPolicy when restart rules are used"

// checkRestartPolicy validates the restart policy and rules of a container.
func checkRestartPolicy(c *rule.Check, x *corev1.Container) {
	switch {
	case x.RestartPolicy != nil:
		known(c.At("restartPolicy"), *x.RestartPolicy, corev1.ContainerRestartPolicyAlways,
			corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)
	case len(x.RestartPolicyRules) > 0:
		c.At("restartPolicy").Required(noRestartPolicy)
	}
	if n := len(x.RestartPolicyRules); n > 20 {
		c.At("restartPolicyRules").TooMany(n, 20)
	}
	for i, r := range x.RestartPolicyRules {
		at := c.At("restartPolicyRules", i)
		known(at.At("action"), r.Action, restartActions(c)...)
		if r.ExitCodes == nil {
			at.At("exitCodes").Required("must be specified")
			continue
		}
		at = at.At("exitCodes")
		known(at.At("operator"), r.ExitCodes.Operator, corev1.ContainerRestartRuleOnExitCodesOpIn,
			corev1.ContainerRestartRuleOnExitCodesOpNotIn)
		if n := len(r.ExitCodes.Values); n > 255 {
			at.At("values").TooMany(n, 255)
		}
	}
}

// mayRestartAll reports whether rules may restart all containers, and sidecars may have rules.
func mayRestartAll(c *rule.Check) bool {
	return c.Gates.On(gate.RestartAllContainersOnContainerExits) || rule.Given[inherited](c).restartAll
}

// restartActions returns the valid actions of rules.
func restartActions(c *rule.Check) []corev1.ContainerRestartRuleAction {
	actions := []corev1.ContainerRestartRuleAction{corev1.ContainerRestartRuleActionRestart}
	if mayRestartAll(c) {
		actions = append(actions, corev1.ContainerRestartRuleActionRestartAllContainers)
	}
	return actions
}

// known rejects an unsupported value. The error lists the valid ones in this order.
func known[T ~string](c *rule.Check, value T, valid ...T) bool {
	ok := slices.Contains(valid, value)
	if !ok {
		rule.NotSupported(c, value, valid...)
	}
	return ok
}

// notFound adds an error about a name that does not exist.
func notFound(c *rule.Check, name string) { c.Add(field.NotFound(c.Path(), name)) }

// checkContainer validates a container that is not ephemeral. Images in templates may have
// surrounding spaces, for compatibility.
func checkContainer(c *rule.Check, x *corev1.Container) {
	checkAny(c, x)
	if rule.Given[podContext](c).isPod {
		checkImage(c.At("image"), x.Image)
	}
}

func checkImage(c *rule.Check, image string) {
	if strings.TrimSpace(image) != image {
		c.Invalid(image, "must not have leading or trailing whitespace")
	}
}

// checkAny has the rules for any container.
func checkAny(c *rule.Check, x *corev1.Container) {
	pod := rule.Given[podContext](c)
	if x.TerminationMessagePolicy != "" {
		known(c.At("terminationMessagePolicy"), x.TerminationMessagePolicy,
			corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	}
	checkPorts(c, x.Ports)
	checkEnv(c, x.Env, pod)
	checkEnvFrom(c.At("envFrom"), x.EnvFrom)
	checkVolumeMounts(c, x, pod)
	checkVolumeDevices(c, x, pod)
	checkResources(c.At("resources"), &x.Resources, kind.ValidateContainerResource, pod)
	checkResizePolicy(c.At("resizePolicy"), x.ResizePolicy, pod.spec.RestartPolicy)
}

// checkEphemeral validates an ephemeral container.
func checkEphemeral(c *rule.Check, common *corev1.EphemeralContainerCommon) {
	x := (*corev1.Container)(common)
	checkAny(c, x)
	checkImage(c.At("image"), x.Image)
	forbid := func(isThere bool, steps ...any) {
		if isThere {
			c.At(steps...).Forbidden("cannot be set for an Ephemeral Container")
		}
	}
	forbid(x.Ports != nil, "ports")
	forbid(!isZero(x.Resources), "resources")
	forbid(x.ResizePolicy != nil, "resizePolicy")
	forbid(x.RestartPolicy != nil, "restartPolicy")
	forbid(x.RestartPolicyRules != nil, "restartPolicyRules")
	forbid(x.LivenessProbe != nil, "livenessProbe")
	forbid(x.ReadinessProbe != nil, "readinessProbe")
	forbid(x.StartupProbe != nil, "startupProbe")
	forbid(x.Lifecycle != nil, "lifecycle")
	for i, m := range x.VolumeMounts {
		forbid(m.SubPath != "", "volumeMounts", i, "subPath")
		forbid(m.SubPathExpr != "", "volumeMounts", i, "subPathExpr")
	}
}

func isZero(r corev1.ResourceRequirements) bool {
	return r.Limits == nil && r.Requests == nil && r.Claims == nil
}

func checkPorts(c *rule.Check, ports []corev1.ContainerPort) {
	names := sets.New[string]()
	for i, p := range ports {
		at := c.At("ports", i)
		if p.Name != "" {
			if details := validation.IsValidPortName(p.Name); len(details) > 0 {
				at.At("name").Invalids(p.Name, details)
			} else {
				checkName(at, p.Name, names)
			}
		}
		if p.HostPort != 0 {
			at.At("hostPort").Invalids(p.HostPort, validation.IsValidPortNum(int(p.HostPort)))
		}
	}
}

// checkResizePolicy validates the resize policies of a container. Most errors name the list.
func checkResizePolicy(c *rule.Check, policies []corev1.ContainerResizePolicy, ofPod corev1.RestartPolicy) {
	names := sets.New[corev1.ResourceName]()
	for i, p := range policies {
		if names.Has(p.ResourceName) {
			c.At(i).Duplicate(p.ResourceName)
		}
		names.Insert(p.ResourceName)
		if p.ResourceName == "" {
			c.Required("")
		} else {
			known(c, p.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)
		}
		if p.RestartPolicy == "" {
			c.Required("")
		} else {
			known(c, p.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)
		}
		if ofPod == corev1.RestartPolicyNever && p.RestartPolicy != corev1.NotRequired {
			c.Invalid(p.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
		}
	}
}

// containersOf returns all containers of a spec in starting order. Ephemeral ones are converted.
func containersOf(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
		for i := range spec.EphemeralContainers {
			if !yield((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)) {
				return
			}
		}
	}
}

// isSidecar reports whether an init container is a sidecar.
func isSidecar(x *corev1.Container) bool {
	return x.RestartPolicy != nil && *x.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// restartsOnResize reports whether a resize restarts a container.
func restartsOnResize(x *corev1.Container) bool {
	for _, p := range x.ResizePolicy {
		if p.RestartPolicy == corev1.RestartContainer {
			return true
		}
	}
	return false
}

// eachContainer calls do for every container of a spec at c.
func eachContainer(c *rule.Check, spec *corev1.PodSpec, do func(at *rule.Check, x *corev1.Container)) {
	for i := range spec.InitContainers {
		do(c.At("initContainers", i), &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		do(c.At("containers", i), &spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		do(c.At("ephemeralContainers", i), (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
}
