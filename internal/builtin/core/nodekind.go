package core

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// nodeKind describes the kind Node.
func nodeKind() kind.Kind[*corev1.Node, *corev1.NodeList] {
	return kind.Kind[*corev1.Node, *corev1.NodeList]{
		Definition: resource.Definition{
			Plural: "nodes", ShortNames: []string{"no"},
			StoragePrefix: resource.BuiltInPrefix("minions"), // the older name of nodes
			Strategy: resource.Strategy{
				AllowUnconditionalUpdate: true, Prepare: prepareNode, Canonicalize: storeNode,
			},
		},
		StatusKeeps:    "spec",
		StatusOnCreate: true,
		Rules:          rule.Lazy(kind.ResourceLists, rule.Default[corev1.NodeStatus](defaultNodeStatus)),
		Default:        defaultNodeRanges,
		Validate:       validateNode,
		ValidateStatus: validateNodeChange,
		Warn:           warnOfNode,
		Columns: `
			Status             string       status    "The status of the node"
			Roles              string       roles     "The roles of the node"
			Age
			Version            string       .status.nodeInfo.kubeletVersion
			Internal-IP        string wide  internal  .status.addresses
			External-IP        string wide  external  .status.addresses
			OS-Image           string wide  .status.nodeInfo.osImage:<unknown>
			Kernel-Version     string wide  kernel    .status.nodeInfo.kernelVersion
			Container-Runtime  string wide  .status.nodeInfo.containerRuntimeVersion:<unknown>
		`,
		Cells: kind.Cells{
			"status":   shownNodeStatus,
			"roles":    rolesOfNode,
			"internal": func(obj map[string]any) any { return addressOfNode(obj, corev1.NodeInternalIP) },
			"external": func(obj map[string]any) any { return addressOfNode(obj, corev1.NodeExternalIP) },
			"kernel": func(obj map[string]any) any {
				info := kind.Tree(obj, "status", "nodeInfo")
				version := kind.Text(info, "kernelVersion")
				if version == "" {
					version = "<unknown>"
				}
				if arch := kind.Text(info, "architecture"); arch != "" {
					version += " (" + arch + ")"
				}
				return version
			},
		},
		Select: "spec.unschedulable",
	}
}

func shownNodeStatus(obj map[string]any) any {
	shown := "Unknown"
	for _, c := range kind.List(obj, "status", "conditions") {
		condition, _ := c.(map[string]any)
		if kind.Text(condition, "type") != string(corev1.NodeReady) {
			continue
		}
		shown = "NotReady"
		if kind.Text(condition, "status") == string(corev1.ConditionTrue) {
			shown = "Ready"
		}
	}
	if kind.Value(obj, "spec", "unschedulable") == true {
		shown += ",SchedulingDisabled"
	}
	return shown
}

func rolesOfNode(obj map[string]any) any {
	var roles []string
	for label, value := range kind.Pairs(obj, "metadata", "labels") {
		role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/")
		if label == "kubernetes.io/role" {
			role, ok = value, true
		}
		if ok && role != "" {
			roles = append(roles, role)
		}
	}
	if roles == nil {
		return "<none>"
	}
	slices.Sort(roles)
	return strings.Join(slices.Compact(roles), ",")
}

func addressOfNode(obj map[string]any, of corev1.NodeAddressType) any {
	for _, a := range kind.List(obj, "status", "addresses") {
		address, _ := a.(map[string]any)
		if kind.Text(address, "type") == string(of) {
			return kind.Text(address, "address")
		}
	}
	return "<none>"
}

// defaultNodeStatus sets the allocatable resources to the capacity.
func defaultNodeStatus(status map[string]any) {
	if status["allocatable"] == nil && status["capacity"] != nil {
		kind.Put(status, "allocatable", status["capacity"])
	}
}

// storeNode removes empty lists, as storage in Kubernetes does.
func storeNode(node map[string]any) {
	if status := kind.Tree(node, "status"); len(kind.Tree(status, "allocatable")) == 0 {
		delete(status, "allocatable")
		defaultNodeStatus(status)
	}
}

// defaultNodeRanges keeps podCIDR and podCIDRs consistent.
func defaultNodeRanges(node map[string]any) {
	spec := kind.Child(node, "spec")
	first, ranges := kind.Text(spec, "podCIDR"), kind.List(spec, "podCIDRs")
	switch {
	case first != "" && (len(ranges) == 0 || ranges[0] != first):
		spec["podCIDRs"] = []any{first}
	case first == "" && len(ranges) > 0:
		spec["podCIDR"] = ranges[0]
	}
}

// prepareNode drops fields of removed features, unless the old node has them.
func prepareNode(_ context.Context, c *resource.Change) {
	for _, f := range [][2]string{{"spec", "configSource"}, {"status", "config"}} {
		if kind.Value(c.Old, f[0], f[1]) == nil {
			delete(kind.Tree(c.Object, f[0]), f[1])
		}
	}
	const name = "runningInUserNamespace"
	if c.Subresource == "status" && !c.Gates.On(gate.KubeletInUserNamespace) && kind.Value(c.Old, "status", "nodeInfo", name) == nil {
		delete(kind.Tree(c.Object, "status", "nodeInfo"), name)
	}
}

func validateNode(c *rule.Check, node, old *corev1.Node) {
	if old != nil {
		validateNodeChange(c, node, old)
	} else {
		validateNodeCommon(c, node)
	}
	if s := node.Status.NodeInfo.Swap; s != nil && s.Capacity != nil && *s.Capacity <= 0 {
		c.At("metadata", "nodeSwapStatus", "capacity").Invalid(*s.Capacity, "must be greater than zero")
	}
	ranges, at := node.Spec.PodCIDRs, c.At("spec", "podCIDRs")
	for i, r := range ranges {
		c.Add(kind.ValidateLegacyCIDR(c.Gates, at.At(i).Path(), r, nil)...)
	}
	if len(ranges) < 2 {
		return
	}
	dual, err := netutils.IsDualStackCIDRStrings(ranges)
	if err != nil {
		c.Add(field.InternalError(at.Path(), fmt.Errorf("invalid PodCIDRs. failed to check with dual stack with error:%v", err)))
	}
	if !dual || len(ranges) > 2 {
		at.Invalid(ranges, "may specify no more than one CIDR for each IP family")
	}
}

// validateNodeCommon has the rules for creates, updates and status updates.
func validateNodeCommon(c *rule.Check, node *corev1.Node) {
	meta := c.At("metadata")
	if text := node.Annotations[taintsAnnotation]; text != "" {
		var taints []corev1.Taint
		if err := json.Unmarshal([]byte(text), &taints); err != nil {
			meta.At("annotations").Invalid(taintsAnnotation, err.Error())
		}
		validateTaints(meta.At("annotations", taintsAnnotation), taints)
	}
	if text := node.Annotations[corev1.PreferAvoidPodsAnnotationKey]; text != "" {
		validateAvoided(meta.At("annotations"), text)
	}
	validateTaints(meta.At("taints"), node.Spec.Taints)
	for _, list := range []struct {
		name string
		list corev1.ResourceList
	}{{"capacity", node.Status.Capacity}, {"allocatable", node.Status.Allocatable}} {
		for _, name := range kind.SortedKeys(list.list) {
			kind.ValidateAmountOf(c.At("status", list.name, string(name)), name, list.list[name])
		}
	}
	validateFeatures(c.At("status", "declaredFeatures"), node.Status.DeclaredFeatures)
	if p := node.Spec.PodPreemptionPolicy; p != nil {
		c.Walk(p, "spec", "podPreemptionPolicy")
	}
}

// taintsAnnotation is the older form of spec.taints.
const taintsAnnotation = "scheduler.alpha.kubernetes.io/taints"

func validateTaints(c *rule.Check, taints []corev1.Taint) {
	type pair struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[pair]bool{}
	for i, t := range taints {
		at := c.At(i)
		c.Add(metavalidation.ValidateLabelName(t.Key, at.At("key").Path())...)
		if details := validation.IsValidLabelValue(t.Value); len(details) > 0 {
			at.At("value").Invalid(t.Value, strings.Join(details, ";"))
		}
		switch t.Effect {
		case "":
			at.At("effect").Required("")
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			rule.NotSupported(at.At("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
		}
		if seen[pair{t.Key, t.Effect}] {
			err := field.Duplicate(at.Path(), rule.Shown(t))
			err.Detail = "taints must be unique by key and effect pair"
			c.Add(err)
		}
		seen[pair{t.Key, t.Effect}] = true
	}
}

// validateAvoided validates an annotation with the owners of pods to avoid.
func validateAvoided(c *rule.Check, text string) {
	var avoid corev1.AvoidPods
	if err := json.Unmarshal([]byte(text), &avoid); err != nil {
		c.At("AvoidPods").Invalid(corev1.PreferAvoidPodsAnnotationKey, err.Error())
	}
	for i, e := range avoid.PreferAvoidPods {
		at, owner := c.At(corev1.PreferAvoidPodsAnnotationKey, i, "PodSignature"), e.PodSignature.PodController
		if owner == nil {
			at.Required("")
		} else if owner.Controller == nil || !*owner.Controller {
			at.At("PodController", "Controller").Invalid(false, "must point to a controller")
		}
	}
}

var featureName = rule.Pattern(`^[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*$`)

// validateFeatures validates the names of features, which must be sorted.
func validateFeatures(c *rule.Check, names []string) {
	for i, name := range names {
		at, most := c.At(i), validation.DNS1123SubdomainMaxLength
		if len(name) > most {
			at.Invalid(name, fmt.Sprintf("invalid feature name %q: must be no more than %d characters", name, most))
		} else if !featureName().MatchString(name) {
			at.Invalid(name, fmt.Sprintf("invalid feature name %q: must start with an UpperCamelCase segment, with subsequent segments separated by '/' "+
				"(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes", name))
		}
		switch {
		case i == 0 || name > names[i-1]:
		case name == names[i-1]:
			at.Duplicate(name)
		default:
			at.Invalid(name, "list must be sorted alphabetically")
		}
	}
}

// validateNodeChange validates an update of a node or its status.
func validateNodeChange(c *rule.Check, node, old *corev1.Node) {
	validateNodeCommon(c, node)
	seen := map[corev1.NodeAddress]bool{}
	for i, a := range node.Status.Addresses {
		if seen[a] {
			c.At("status", "addresses", i).Duplicate(a)
		}
		seen[a] = true
	}
	was, is := old.Spec.PodCIDRs, node.Spec.PodCIDRs
	if len(was) > 0 && !slices.Equal(was, is) {
		c.At("spec", "podCIDRs").Forbidden(`node updates may not change podCIDR except from "" to valid`)
	}
	switch provider := c.At("spec", "providerID"); {
	case old.Spec.ProviderID == "" || old.Spec.ProviderID == node.Spec.ProviderID:
	case node.Spec.ProviderID == "":
		provider.Invalid(nil, "field cannot be cleared once set")
	default:
		provider.Invalid(nil, "field cannot be modified once set")
	}
	validateNodeConfigs(c, node)
	if node.Spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID {
		c.At("spec", "externalID").Forbidden("may not be updated")
	}
}

func warnOfNode(c *rule.Check, node, _ *corev1.Node) {
	//lint:ignore SA1019 old clients send it
	if node.Spec.ConfigSource != nil {
		c.Warn("spec.configSource: the feature is removed")
	}
	if node.Spec.DoNotUseExternalID != "" {
		c.Warn("spec.externalID: this field is deprecated, and is unused by Kubernetes")
	}
	for i, r := range node.Spec.PodCIDRs {
		c.AddWarnings(validation.GetWarningsForCIDR(c.At("spec", "podCIDRs", i).Path(), r)...)
	}
}
