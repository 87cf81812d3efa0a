// Package builtin has the kinds that are served without a
// CustomResourceDefinition: those a client or a controller takes for granted.
//
// Each is one resource.Definition whose schema is derived from its Go type; what
// the type cannot say (defaults, limits, columns) is written here. The package
// does not know how objects are stored or served, and nothing of what other
// components do to them later: events are not expired here, nor namespaces
// emptied.
package builtin

import (
	"reflect"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
)

// Definitions returns the built-in kinds.
func Definitions() []*resource.Definition {
	return []*resource.Definition{
		namespaces(), configMaps(), secrets(), serviceAccounts(), coreEvents(), newEvents(), leases(),
		services(), endpointSlices(), storageVersionMigrations(),
	}
}

// SystemNamespaces are the namespaces that always exist.
func SystemNamespaces() []string {
	return []string{
		metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease,
	}
}

// ImmortalNamespaces are the namespaces that may not be deleted.
func ImmortalNamespaces() []string {
	return []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}
}

// Priorities of groups in discovery.
const (
	corePriority         = 18000
	eventsPriority       = 17750
	coordinationPriority = 16500
	discoveryPriority    = 16200

	storageMigrationPriority = 15800
)

// kind completes the Definition of a kind with one version and a Go type.
func kind[T, L any](d resource.Definition, v *resource.Version) *resource.Definition {
	d.ListKind, d.Dialect = d.Kind+"List", resource.CompiledIn
	v.Name, v.Served, v.Storage = "v1", true, true
	v.New = func() runtime.Object { return any(new(T)).(runtime.Object) }
	v.Schema = schema.FromType(reflect.TypeFor[T](), model.TypeOptions{
		Kind:  model.Kind{Group: d.Group, Version: v.Name, Kind: d.Kind, ListKind: d.ListKind, Plural: d.Plural},
		List:  reflect.TypeFor[L](),
		Marks: marks(),
	})
	d.Versions = []*resource.Version{v}
	if d.StoragePrefix == "" {
		d.StoragePrefix = resource.BuiltInPrefix(d.Plural)
	}
	return resource.New(d)
}

// whenDecoded adds to the schema of a kind that is not in use yet what Kubernetes
// makes of an object when it decodes one: defaults that depend on more than one
// field, and fields that are another way to write others. The outcome belongs to
// who writes the object, as if the client had sent it. What Prepare does belongs to
// nobody.
func whenDecoded(d *resource.Definition, change func(obj map[string]any)) {
	for _, v := range d.Versions {
		v.Schema = decoding{v.Schema, change}
	}
}

type decoding struct {
	resource.Schema
	change func(obj map[string]any)
}

func (s decoding) Complete(obj map[string]any) (map[string]any, []string, error) {
	out, unknown, err := s.Schema.Complete(obj)
	if err == nil {
		s.change(out)
	}
	return out, unknown, err
}

func (s decoding) Default(obj map[string]any) {
	s.Schema.Default(obj)
	s.change(obj)
}

func leases() *resource.Definition {
	return kind[coordinationv1.Lease, coordinationv1.LeaseList](resource.Definition{
		Group: coordinationv1.GroupName, Plural: "leases", Singular: "lease", Kind: "Lease",
		Namespaced: true, GroupPriority: coordinationPriority,
		AllowCreateOnUpdate: true,
		Prepare:             prepareLease,
		Validate:            validateLease,
	}, &resource.Version{Columns: []resource.Column{
		{
			Name: "Holder", Type: "string", Description: coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"],
			Cell: func(obj map[string]any) any { return text(obj, "spec", "holderIdentity") },
		},
		ageColumn(),
	}})
}

// ageColumn shows how old an object is.
func ageColumn() resource.Column {
	return resource.Column{
		Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		Cell: func(obj map[string]any) any { return age(object.MetaString(obj, "creationTimestamp")) },
	}
}

// age is the cell of a timestamp that may not be there.
func age(timestamp string) any {
	if timestamp == "" {
		return "<unknown>"
	}
	return resource.Age(timestamp)
}

// marks say of the Go types what only their source does.
func marks() model.Marks {
	const core = "io.k8s.api.core.v1."
	atomic := model.Mark{List: "atomic"}
	protocols, policies := []string{"SCTP", "TCP", "UDP"}, []string{"Cluster", "Local"}
	const discovery = "io.k8s.api.discovery.v1."
	return model.Marks{
		discovery + "Endpoint":      {"addresses": {List: "set"}},
		discovery + "EndpointHints": {"forNodes": atomic, "forZones": atomic},
		discovery + "EndpointPort":  {"": {Map: "atomic"}, "protocol": {Enum: protocols}},
		discovery + "EndpointSlice": {
			"addressType": {Enum: []string{"FQDN", "IPv4", "IPv6"}},
			"endpoints":   {List: "atomic", Optional: true},
			"ports":       {List: "atomic", Optional: true},
		},
		core + "LoadBalancerIngress": {"ports": atomic},
		core + "LoadBalancerStatus":  {"ingress": atomic},
		core + "PortStatus":          {"protocol": {Enum: protocols}},
		core + "ServicePort":         {"protocol": {Default: "TCP", Enum: protocols}},
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
		core + "Event": {
			"reportingComponent": {Optional: true},
			"reportingInstance":  {Optional: true},
		},
		"io.k8s.api.events.v1.Event":  {"metadata": {Optional: true}},
		core + "LocalObjectReference": {"": {Map: "atomic"}, "name": {Default: ""}},
		core + "NamespaceSpec":        {"finalizers": atomic},
		core + "NamespaceStatus": {
			"conditions": {List: "map", Keys: []string{"type"}},
			"phase":      {Enum: []string{string(corev1.NamespaceActive), string(corev1.NamespaceTerminating)}},
		},
		core + "ObjectReference": {"": {Map: "atomic"}},
		core + "ServiceAccount": {
			"imagePullSecrets": atomic,
			"secrets":          {List: "map", Keys: []string{"name"}},
		},
		"io.k8s.api.storagemigration.v1.StorageVersionMigrationStatus": {"conditions": {List: "map", Keys: []string{"type"}}},
	}
}
