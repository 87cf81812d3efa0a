package networking

import (
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func networkPolicies() *resource.Definition {
	return kind.Kind[*networkingv1.NetworkPolicy, *networkingv1.NetworkPolicyList]{
		Definition: resource.Definition{
			Group: networkingv1.GroupName, Plural: "networkpolicies", ShortNames: []string{"netpol"}, Namespaced: true,
			HasGeneration: true, CountsEmpty: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		Rules: policyRules, Default: defaultPolicy, Validate: validatePolicy, Warn: warnOfPolicy,
		Columns: `
			Pod-Selector  string  selector  .spec.podSelector
			Age
		`,
		Cells: kind.Cells{"selector": func(obj map[string]any) any {
			return metav1.FormatLabelSelector(kind.ValueOf[metav1.LabelSelector](kind.Tree(obj, "spec", "podSelector")))
		}},
	}.New()
}

// defaultPolicy sets missing policyTypes: Ingress, and Egress if it has egress rules.
func defaultPolicy(obj map[string]any) {
	spec := kind.Tree(obj, "spec")
	if spec == nil || len(kind.List(spec, "policyTypes")) > 0 {
		return
	}
	types := []any{string(networkingv1.PolicyTypeIngress)}
	if len(kind.List(spec, "egress")) > 0 {
		types = append(types, string(networkingv1.PolicyTypeEgress))
	}
	spec["policyTypes"] = types
}

// tolerated are invalid values of the old policy, which may stay.
type tolerated struct {
	selectors metavalidation.LabelSelectorValidationOptions
	cidrs     []string
}

func toleratedBy(old *networkingv1.NetworkPolicy) *tolerated {
	t := &tolerated{}
	if old == nil {
		return t
	}
	t.selectors.AllowInvalidLabelValueInSelector = len(metavalidation.ValidateLabelSelector(&old.Spec.PodSelector, t.selectors, nil)) > 0
	for _, b := range blocks(old) {
		t.cidrs = append(append(t.cidrs, b.CIDR), b.Except...)
	}
	return t
}

// blocks returns the IP blocks of a policy.
func blocks(p *networkingv1.NetworkPolicy) (out []*networkingv1.IPBlock) {
	for i := range p.Spec.Ingress {
		for _, peer := range p.Spec.Ingress[i].From {
			out = append(out, peer.IPBlock)
		}
	}
	for i := range p.Spec.Egress {
		for _, peer := range p.Spec.Egress[i].To {
			out = append(out, peer.IPBlock)
		}
	}
	return slices.DeleteFunc(out, func(b *networkingv1.IPBlock) bool { return b == nil })
}

var policyRules = rule.Lazy(
	rule.On(validatePort),
	rule.On(validatePeer),
	rule.On(validateBlock),
	rule.On(func(c *rule.Check, s *metav1.LabelSelector) {
		c.Add(metavalidation.ValidateLabelSelector(s, rule.Given[tolerated](c).selectors, c.Path())...)
	}),
)

func validatePolicy(c *rule.Check, p, old *networkingv1.NetworkPolicy) {
	rule.With(c, toleratedBy(old))
	c.Walk(&p.Spec, "spec")
	types := p.Spec.PolicyTypes
	at := c.At("spec", "policyTypes")
	if len(types) > 2 {
		at.Invalid(types, "may not specify more than two policyTypes")
		return
	}
	for i, of := range types {
		if of != networkingv1.PolicyTypeIngress && of != networkingv1.PolicyTypeEgress {
			rule.NotSupported(at.At(i), of, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
		}
	}
}

func validatePort(c *rule.Check, p *networkingv1.NetworkPolicyPort) {
	if p.Protocol != nil {
		switch *p.Protocol {
		case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
		default:
			rule.NotSupported(c.At("protocol"), *p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
		}
	}
	end := c.At("endPort")
	switch {
	case p.Port == nil:
		if p.EndPort != nil {
			end.Invalid(*p.EndPort, "may not be specified when `port` is not specified")
		}
	case p.Port.Type == intstr.Int:
		c.At("port").Invalids(p.Port.IntVal, validation.IsValidPortNum(int(p.Port.IntVal)))
		if p.EndPort == nil {
			return
		}
		if *p.EndPort < p.Port.IntVal {
			end.Invalid(*p.EndPort, "must be greater than or equal to `port`")
		}
		end.Invalids(*p.EndPort, validation.IsValidPortNum(int(*p.EndPort)))
	default:
		if p.EndPort != nil {
			end.Invalid(*p.EndPort, "may not be specified when `port` is non-numeric")
		}
		c.At("port").Invalids(p.Port.StrVal, validation.IsValidPortName(p.Port.StrVal))
	}
}

func validatePeer(c *rule.Check, p *networkingv1.NetworkPolicyPeer) {
	selects := p.PodSelector != nil || p.NamespaceSelector != nil
	switch {
	case p.IPBlock == nil && !selects:
		c.Required("must specify a peer")
	case p.IPBlock != nil && selects:
		c.Forbidden("may not specify both ipBlock and another peer")
	}
}

func validateBlock(c *rule.Check, b *networkingv1.IPBlock) {
	if b.CIDR == "" {
		c.At("cidr").Required("")
		return
	}
	old := rule.Given[tolerated](c).cidrs
	parsed := validateCIDR(c.At("cidr"), b.CIDR, old)
	if parsed == nil {
		return
	}
	for i, except := range b.Except {
		at := c.At("except", i)
		without := validateCIDR(at, except, old)
		if without == nil {
			continue
		}
		all, _ := parsed.Mask.Size()
		some, _ := without.Mask.Size()
		if !parsed.Contains(without.IP) || all >= some {
			at.Invalid(except, "must be a strict subset of `cidr`")
		}
	}
}

// validateCIDR returns the network, or nil if it is invalid.
func validateCIDR(c *rule.Check, cidr string, old []string) *net.IPNet {
	c.Add(kind.ValidateLegacyCIDR(c.Gates, c.Path(), cidr, old)...)
	_, parsed, err := netutils.ParseCIDRSloppy(cidr)
	if err != nil {
		return nil
	}
	return parsed
}

func warnOfPolicy(c *rule.Check, p, _ *networkingv1.NetworkPolicy) {
	warn := func(c *rule.Check, peers []networkingv1.NetworkPolicyPeer) {
		for i := range peers {
			b, at := peers[i].IPBlock, c.At(i, "ipBlock")
			if b == nil {
				continue
			}
			c.AddWarnings(validation.GetWarningsForCIDR(at.At("cidr").Path(), b.CIDR)...)
			for j, except := range b.Except {
				c.AddWarnings(validation.GetWarningsForCIDR(at.At("except", j).Path(), except)...)
			}
		}
	}
	for i := range p.Spec.Ingress {
		warn(c.At("spec", "ingress", i, "from"), p.Spec.Ingress[i].From)
	}
	for i := range p.Spec.Egress {
		warn(c.At("spec", "egress", i, "to"), p.Spec.Egress[i].To)
	}
}
