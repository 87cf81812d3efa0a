package flowcontrol

import (
	"math"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/utils/ptr"
)

// fixedSchemas are the mandatory FlowSchemas by name. They are immutable.
var fixedSchemas = map[string]flowcontrolv1.FlowSchemaSpec{
	flowcontrolv1.FlowSchemaNameExempt: {
		MatchingPrecedence:         1,
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: flowcontrolv1.PriorityLevelConfigurationNameExempt},
		Rules:                      anything("system:masters"),
	},
	flowcontrolv1.FlowSchemaNameCatchAll: {
		MatchingPrecedence:         flowcontrolv1.FlowSchemaMaxMatchingPrecedence,
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: flowcontrolv1.PriorityLevelConfigurationNameCatchAll},
		DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
		Rules:                      anything("system:unauthenticated", "system:authenticated"),
	},
}

// anything matches all requests of some groups.
func anything(groups ...string) []flowcontrolv1.PolicyRulesWithSubjects {
	all := []string{"*"}
	r := flowcontrolv1.PolicyRulesWithSubjects{
		ResourceRules:    []flowcontrolv1.ResourcePolicyRule{{Verbs: all, APIGroups: all, Resources: all, Namespaces: all, ClusterScope: true}},
		NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: all, NonResourceURLs: all}},
	}
	for _, g := range groups {
		r.Subjects = append(r.Subjects, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: g}})
	}
	return []flowcontrolv1.PolicyRulesWithSubjects{r}
}

// fixedLevels are the mandatory priority levels by name. Only a part of exempt can change.
var fixedLevels = map[string]flowcontrolv1.PriorityLevelConfigurationSpec{
	flowcontrolv1.PriorityLevelConfigurationNameExempt: {
		Type:   flowcontrolv1.PriorityLevelEnablementExempt,
		Exempt: &flowcontrolv1.ExemptPriorityLevelConfiguration{NominalConcurrencyShares: ptr.To(int32(0)), LendablePercent: ptr.To(int32(0))},
	},
	flowcontrolv1.PriorityLevelConfigurationNameCatchAll: {
		Type: flowcontrolv1.PriorityLevelEnablementLimited,
		Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: ptr.To(int32(5)), LendablePercent: ptr.To(int32(0)),
			LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
		},
	},
}

// mostBits is the number of hash bits for shuffle sharding.
const mostBits = 60

// bitsOf returns the number of hash bits for hands of that size from that many queues.
func bitsOf(queues, hand int32) int {
	return int(math.Ceil(math.Log2(float64(queues)) * float64(hand)))
}
