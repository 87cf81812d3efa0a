// Package core has the built-in kinds of the group without a name, but for events, which
// share what is stored with those of another group (internal/builtin/events).
//
// It knows what one may be and what becomes of it when it is written. What controllers
// do with it later is in internal/controller.
package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/schema/model"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{
		namespaces(), configMaps(), secrets(), serviceAccounts(), services(), endpoints(),
		podTemplates(), replicationControllers(),
		persistentVolumes(), persistentVolumeClaims(),
		nodeKind().New(), resourceQuotas(), limitRanges(),
	}
}

// marks say of the Go types what only their source does.
func marks() model.Marks {
	const core = "io.k8s.api.core.v1."
	atomic := model.Mark{List: "atomic"}
	protocols, policies := []string{"SCTP", "TCP", "UDP"}, []string{"Cluster", "Local"}
	return model.Marks{
		core + "EndpointAddress":     {"": {Map: "atomic"}},
		core + "EndpointPort":        {"": {Map: "atomic"}, "protocol": {Enum: protocols}},
		core + "EndpointSubset":      {"addresses": atomic, "notReadyAddresses": atomic, "ports": atomic},
		core + "Endpoints":           {"subsets": atomic},
		core + "LoadBalancerIngress": {"ports": atomic},
		core + "LoadBalancerStatus":  {"ingress": atomic},
		core + "NamespaceSpec":       {"finalizers": atomic},
		core + "NamespaceStatus": {
			"conditions": {List: "map", Keys: []string{"type"}},
			"phase":      {Enum: []string{string(corev1.NamespaceActive), string(corev1.NamespaceTerminating)}},
		},
		core + "PortStatus": {"protocol": {Enum: protocols}},
		core + "ServiceAccount": {
			"imagePullSecrets": atomic,
			"secrets":          {List: "map", Keys: []string{"name"}},
		},
		core + "ServicePort": {"protocol": {Default: "TCP", Enum: protocols}},
		core + "ServiceSpec": {
			"clusterIPs": atomic, "externalIPs": atomic, "loadBalancerSourceRanges": atomic,
			"externalTrafficPolicy": {Enum: policies},
			"internalTrafficPolicy": {Enum: policies},
			"ipFamilies":            {List: "atomic", Elements: []string{"", "IPv4", "IPv6"}},
			"ipFamilyPolicy":        {Enum: []string{"PreferDualStack", "RequireDualStack", "SingleStack"}},
			"ports":                 {List: "map", Keys: []string{"port", "protocol"}},
			"sessionAffinity":       {Enum: []string{"ClientIP", "None"}},
			"type":                  {Enum: []string{"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}},
			"selector":              {Map: "atomic"},
		},
		core + "ServiceStatus": {"conditions": {List: "map", Keys: []string{"type"}}},
	}
}
