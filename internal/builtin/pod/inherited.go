package pod

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

// inherited are exceptions from rules for unchanged values of the old spec.
type inherited struct {
	nodeValues     bool // invalid label values in the selection of nodes
	podValues      bool // and in that of pods
	spreadSelector bool // an invalid selector of a constraint
	labelKeys      bool // label keys of a constraint that the rule for new pods rejects
	sysctls        bool // of a namespace of the host
	ownUsers       bool // user namespaces together with the host network
	comparisons    bool // tolerations with numeric operators; a RuntimeClass has none, even with their gate
	envFiles       bool // environment variables from files
	restartAll     bool // rules that restart all containers, and rules of sidecars
	anySELinux     bool // SELinux change policies other than Recursive

	mirror bool // the pod is a mirror pod
}

// inheritedFrom returns the exceptions for an old spec, or for none.
func inheritedFrom(gates *gate.Set, old *corev1.PodSpec) *inherited {
	comparisons := gates.On(gate.TaintTolerationComparisonOperators)
	if old == nil {
		return &inherited{comparisons: comparisons}
	}
	h := &inherited{ownUsers: old.HostNetwork && !hostUsers(old), comparisons: comparisons}
	if a := old.Affinity; a != nil && a.NodeAffinity != nil {
		h.nodeValues = kind.HasAnyValue(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	for _, t := range termsOf(old.Affinity) {
		h.podValues = h.podValues || isWrong(func(c *rule.Check) { checkTermSelectors(c, t, false) })
	}
	for i := range old.TopologySpreadConstraints {
		s := &old.TopologySpreadConstraints[i]
		h.spreadSelector = h.spreadSelector || isWrong(func(c *rule.Check) { checkSelector(c, s.LabelSelector, false) })
		h.labelKeys = h.labelKeys || gates.On(gate.MatchLabelKeysInPodTopologySpread) && isWrong(func(c *rule.Check) {
			if mergesSpread(gates) {
				checkLabelKeys(c, s.MatchLabelKeys, nil, s.LabelSelector)
			} else {
				checkOldLabelKeys(c, s.MatchLabelKeys, s.LabelSelector)
			}
		})
	}
	if sc := old.SecurityContext; sc != nil {
		h.anySELinux = sc.SELinuxChangePolicy != nil
		for _, s := range sc.Sysctls {
			h.sysctls = h.sysctls || sharedNamespace(old, s.Name) != ""
		}
	}
	h.restartAll = couldAllRestart(old) || slices.ContainsFunc(old.InitContainers, func(x corev1.Container) bool {
		return isSidecar(&x) && len(x.RestartPolicyRules) > 0
	})
	for x := range containersOf(old) {
		for _, v := range x.Env {
			h.envFiles = h.envFiles || v.ValueFrom != nil && v.ValueFrom.FileKeyRef != nil
		}
	}
	for _, t := range old.Tolerations {
		h.comparisons = h.comparisons || t.Operator == corev1.TolerationOpLt || t.Operator == corev1.TolerationOpGt
	}
	return h
}

// isWrong reports whether a rule finds errors.
func isWrong(check func(c *rule.Check)) bool {
	c := rule.NewCheck(context.Background(), nil, nil)
	check(c)
	return len(c.Errors()) > 0
}

// termsOf returns the pod affinity terms.
func termsOf(a *corev1.Affinity) (out []*corev1.PodAffinityTerm) {
	if a == nil {
		return nil
	}
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			out = append(out, &required[i])
		}
		for i := range preferred {
			out = append(out, &preferred[i].PodAffinityTerm)
		}
	}
	if p := a.PodAffinity; p != nil {
		add(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		add(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return out
}
