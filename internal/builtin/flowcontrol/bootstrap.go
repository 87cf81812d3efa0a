package flowcontrol

import (
	"maps"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/utils/ptr"
)

// Schemas returns the initial FlowSchemas by name.
func Schemas() map[string]flowcontrolv1.FlowSchemaSpec {
	out := maps.Clone(fixedSchemas)
	for name, s := range map[string]flowcontrolv1.FlowSchemaSpec{
		"kube-controller-manager":      schema(800, "workload-high", byNamespace, allRequests(user("system:kube-controller-manager"))),
		"kube-scheduler":               schema(800, "workload-high", byNamespace, allRequests(user("system:kube-scheduler"))),
		"kube-system-service-accounts": schema(900, "workload-high", byNamespace, allRequests(systemAccounts)),
		"service-accounts":             schema(9000, "workload-low", byUser, anything("system:serviceaccounts")[0]),
		"system-nodes":                 schema(500, "system", byUser, anything("system:nodes")[0]),
		"global-default":               schema(9900, "global-default", byUser, fixedSchemas[flowcontrolv1.FlowSchemaNameCatchAll].Rules[0]),
		"probes":                       schema(2, flowcontrolv1.PriorityLevelConfigurationNameExempt, "", probing()),
		"system-leader-election": schema(100, "leader-election", byUser, flowcontrolv1.PolicyRulesWithSubjects{
			Subjects:      []flowcontrolv1.Subject{user("system:kube-controller-manager"), user("system:kube-scheduler"), systemAccounts},
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{about("coordination.k8s.io", false, []string{"leases"}, "get", "create", "update")},
		}),
		"system-node-high": schema(400, "node-high", byUser, flowcontrolv1.PolicyRulesWithSubjects{
			Subjects: anything("system:nodes")[0].Subjects,
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{
				about("", true, []string{"nodes", "nodes/status"}, "*"), about("coordination.k8s.io", false, []string{"leases"}, "*"),
			},
		}),
	} {
		out[name] = s
	}
	return out
}

// Levels returns the initial PriorityLevelConfigurations by name.
func Levels() map[string]flowcontrolv1.PriorityLevelConfigurationSpec {
	out := maps.Clone(fixedLevels)
	for _, l := range []struct {
		name                           string
		shares, lends, queues, handful int32
	}{
		{"global-default", 20, 50, 128, 6},
		{"leader-election", 10, 0, 16, 4},
		{"node-high", 40, 25, 64, 6},
		{"system", 30, 33, 64, 6},
		{"workload-high", 40, 50, 128, 6},
		{"workload-low", 100, 90, 128, 6},
	} {
		out[l.name] = flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: ptr.To(l.shares), LendablePercent: ptr.To(l.lends),
				LimitResponse: flowcontrolv1.LimitResponse{
					Type:    flowcontrolv1.LimitResponseTypeQueue,
					Queuing: &flowcontrolv1.QueuingConfiguration{Queues: l.queues, HandSize: l.handful, QueueLengthLimit: 50},
				},
			},
		}
	}
	return out
}

// Fixed returns the mandatory objects by name.
func Fixed() (map[string]flowcontrolv1.FlowSchemaSpec, map[string]flowcontrolv1.PriorityLevelConfigurationSpec) {
	return fixedSchemas, fixedLevels
}

// IsFixed reports whether the objects of that name are mandatory and immutable.
func IsFixed(name string) bool { return fixedSchemas[name].MatchingPrecedence != 0 }

const (
	byUser      = flowcontrolv1.FlowDistinguisherMethodByUserType
	byNamespace = flowcontrolv1.FlowDistinguisherMethodByNamespaceType
)

func schema(precedence int32, level string, by flowcontrolv1.FlowDistinguisherMethodType, rules flowcontrolv1.PolicyRulesWithSubjects) flowcontrolv1.FlowSchemaSpec {
	s := flowcontrolv1.FlowSchemaSpec{
		MatchingPrecedence:         precedence,
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
		Rules:                      []flowcontrolv1.PolicyRulesWithSubjects{rules},
	}
	if by != "" {
		s.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: by}
	}
	return s
}

func user(name string) flowcontrolv1.Subject {
	return flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: name}}
}

var systemAccounts = flowcontrolv1.Subject{
	Kind:           flowcontrolv1.SubjectKindServiceAccount,
	ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: "kube-system", Name: flowcontrolv1.NameAll},
}

// allRequests matches all requests of a subject.
func allRequests(s flowcontrolv1.Subject) flowcontrolv1.PolicyRulesWithSubjects {
	rules := anything()[0]
	rules.Subjects = []flowcontrolv1.Subject{s}
	return rules
}

// probing matches requests for health checks.
func probing() flowcontrolv1.PolicyRulesWithSubjects {
	return flowcontrolv1.PolicyRulesWithSubjects{
		Subjects:         fixedSchemas[flowcontrolv1.FlowSchemaNameCatchAll].Rules[0].Subjects,
		NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz", "/readyz", "/livez"}}},
	}
}

// about matches requests for resources of a group in all namespaces.
func about(group string, cluster bool, resources []string, verbs ...string) flowcontrolv1.ResourcePolicyRule {
	return flowcontrolv1.ResourcePolicyRule{
		Verbs: verbs, APIGroups: []string{group}, Resources: resources, ClusterScope: cluster,
		Namespaces: []string{flowcontrolv1.NamespaceEvery},
	}
}
