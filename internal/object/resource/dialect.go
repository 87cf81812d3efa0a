package resource

import "slices"

// A Dialect has the visible differences between Kubernetes' two servers, the one for built-in
// kinds and the one for custom resources. Each field is one difference. No other part of a
// Definition depends on the kind of server.
type Dialect struct {
	// RoutesMethods: an unsupported method, patch type or media type is rejected before all other
	// checks.
	RoutesMethods bool
	// RoutesSubresources: the path of an unknown subresource does not exist. Otherwise the
	// subresource is reported as a missing object.
	RoutesSubresources bool
	// CountsByPath: metrics take the scope of a request from its path. Otherwise a list of one
	// name counts as one object.
	CountsByPath bool
	// SortsVerbs: discovery sorts verbs by name.
	SortsVerbs bool
	// OmitsResponseGroup: aggregated discovery omits group and version of the response kind,
	// which are those of the resource.
	OmitsResponseGroup bool

	// GatesStorageHash: discovery has a hash of the storage version only with the feature gate StorageVersionHash.
	GatesStorageHash bool
	// TellsUnservedStorage: discovery has a hash of the storage version even if that is not
	// served.
	TellsUnservedStorage bool

	// StrategicMergePatch: the kind supports this type of patch.
	StrategicMergePatch bool
	// Protobuf: the kind supports protobuf.
	Protobuf bool
	// KindFirst: the JSON of objects and lists begins with kind, apiVersion and metadata.
	// Otherwise fields are sorted by name.
	KindFirst bool
	// BareItems: the items of a list do not repeat apiVersion and kind.
	BareItems bool
	// OmitsEmptyContinue: a complete list has no continue field.
	OmitsEmptyContinue bool
	// CompletesApplied: the result of an apply is completed by the schema like any other object,
	// which drops nulls that the schema does not allow. Otherwise such nulls stay, and are
	// rejected.
	CompletesApplied bool
	// ChecksPatchedKind: a patch that changes the kind is rejected with a decoding error.
	ChecksPatchedKind bool
	// ForgetsOwners: a write drops field owners in a version that the kind does not have.
	// Otherwise such an owner makes a write leave managedFields unchanged, and makes an apply
	// fail.
	ForgetsOwners bool
	// DecidesAsStored: the hooks that decide on an object get it in the storage version, whatever
	// version the client writes.
	DecidesAsStored bool
	// ReadsGenerations: an object that is stored without a generation is shown without one. Otherwise it has the first one.
	ReadsGenerations bool
	// RejectsZeroDeletion: an update that sets deletionTimestamp to the zero time is rejected, because the field is
	// immutable. Otherwise the value is dropped.
	RejectsZeroDeletion bool
	// UsualFieldSelectors: a kind without selectable fields supports name and namespace in field
	// selectors, even if it is cluster-scoped, and errors about other fields list these two.
	UsualFieldSelectors bool

	// TypedOpenAPI: OpenAPI describes operations and schema of the kind as for Go types.
	TypedOpenAPI bool

	// Group has the differences for a whole group.
	Group GroupDialect
}

// A GroupDialect has the differences for a group, or a version of it. They apply if they apply to
// any of its kinds.
type GroupDialect struct {
	// NoPathIsStatus: a 404 for an unknown path is a Status. Otherwise it is text.
	NoPathIsStatus bool
	// RoutesDiscovery is RoutesMethods for discovery.
	RoutesDiscovery bool
	// CBORDiscovery: a server with CBOR serves the discovery of a version as CBOR too.
	CBORDiscovery bool
	// OpenAPIOfDiscovery: OpenAPI describes the discovery of the group.
	OpenAPIOfDiscovery bool
	// TypedOpenAPI: the document of a version is as for Go types: its title, the security scheme,
	// and the kinds that share its options.
	TypedOpenAPI bool
}

// Custom is the Dialect of custom resources, and the default of a Definition.
var Custom = Dialect{}

// CompiledIn is the Dialect of built-in kinds.
var CompiledIn = Dialect{
	RoutesMethods:        true,
	RoutesSubresources:   true,
	CountsByPath:         true,
	SortsVerbs:           true,
	OmitsResponseGroup:   true,
	GatesStorageHash:     true,
	TellsUnservedStorage: true,
	StrategicMergePatch:  true,
	Protobuf:             true,
	KindFirst:            true,
	BareItems:            true,
	OmitsEmptyContinue:   true,
	CompletesApplied:     true,
	ChecksPatchedKind:    true,
	ForgetsOwners:        true,
	DecidesAsStored:      true,
	ReadsGenerations:     true,
	RejectsZeroDeletion:  true,
	UsualFieldSelectors:  true,
	TypedOpenAPI:         true,
	Group: GroupDialect{
		NoPathIsStatus:     true,
		RoutesDiscovery:    true,
		CBORDiscovery:      true,
		OpenAPIOfDiscovery: true,
		TypedOpenAPI:       true,
	},
}

// or returns the union of d and other.
func (d GroupDialect) or(other GroupDialect) GroupDialect {
	return GroupDialect{
		NoPathIsStatus:     d.NoPathIsStatus || other.NoPathIsStatus,
		RoutesDiscovery:    d.RoutesDiscovery || other.RoutesDiscovery,
		CBORDiscovery:      d.CBORDiscovery || other.CBORDiscovery,
		OpenAPIOfDiscovery: d.OpenAPIOfDiscovery || other.OpenAPIOfDiscovery,
		TypedOpenAPI:       d.TypedOpenAPI || other.TypedOpenAPI,
	}
}

// Dialect returns the differences of the group. A nil group has none.
func (g *Group) Dialect() (of GroupDialect) {
	if g == nil {
		return of
	}
	for _, d := range g.Definitions {
		of = of.or(d.Dialect.Group)
	}
	return of
}

// DialectOf returns the differences of a version of the group.
func (g *Group) DialectOf(version string) (of GroupDialect) {
	for _, d := range g.Definitions {
		if slices.ContainsFunc(d.Versions, func(v *Version) bool { return v.Name == version && v.Served }) {
			of = of.or(d.Dialect.Group)
		}
	}
	return of
}
