package resource

import "slices"

// A Dialect is how Kubernetes answers for a kind where its two servers, the one for
// compiled-in kinds and the one for custom resources, differ and clients can tell.
// Each field is one such difference. No other part of a Definition says which of the
// two servers a kind would have.
type Dialect struct {
	// RoutesMethods says that a method that the path does not have, a type of patch that
	// it does not take, and a media type that the answer cannot have, are refused before
	// anything else is looked at.
	RoutesMethods bool
	// RoutesSubresources says that the path of a subresource that is not there leads
	// nowhere. Otherwise the subresource is missed like an object.
	RoutesSubresources bool
	// CountsByPath says that metrics take what a request is about from its path. Otherwise a
	// list of one name counts as one object.
	CountsByPath bool
	// SortsVerbs says that discovery lists verbs by name.
	SortsVerbs bool
	// OmitsResponseGroup says that aggregated discovery leaves out group and version of
	// the kind, which are those of the resource.
	OmitsResponseGroup bool

	// TellsUnservedStorage says that discovery tells of the version in which objects are
	// stored even if that is not served.
	TellsUnservedStorage bool

	// StrategicMergePatch says that the kind takes such patches.
	StrategicMergePatch bool
	// Protobuf says that objects are read and written in protobuf, too.
	Protobuf bool
	// KindFirst says that the JSON of objects and lists begins with kind, apiVersion and
	// metadata. Otherwise fields are in the order of their names.
	KindFirst bool
	// BareItems says that the items of a list do not repeat apiVersion and kind.
	BareItems bool
	// OmitsEmptyContinue says that a list without more to come has no continue.
	OmitsEmptyContinue bool
	// CompletesApplied says that the result of an apply is made an object of the schema
	// like any other, which drops nulls that the schema does not allow. Otherwise it
	// keeps them and is refused because of them.
	CompletesApplied bool
	// ChecksPatchedKind says that what a patch makes of an object is refused as
	// undecodable where it is of another kind.
	ChecksPatchedKind bool
	// ForgetsOwners says that a write forgets who owns fields in a version that the kind does not
	// have. Otherwise such an owner stops the account: a write leaves managedFields as they are, and
	// an apply is refused.
	ForgetsOwners bool
	// DecidesAsStored says that the kind decides on an object that is written in the version
	// in which it is stored, whatever version the client writes.
	DecidesAsStored bool
	// UsualFieldSelectors says that a kind without selectable fields of its own has name
	// and namespace, even if no object has a namespace, and that another field is answered
	// with these two.
	UsualFieldSelectors bool

	// TypedOpenAPI says that OpenAPI describes the operations and the schema of the kind
	// as it does those of Go types.
	TypedOpenAPI bool

	// Group has the differences that tell of a whole group.
	Group GroupDialect
}

// A GroupDialect is how Kubernetes answers for a group or a version of it. It has what
// any of its kinds has.
type GroupDialect struct {
	// NoPathIsStatus says that a path that leads nowhere is answered with a Status.
	// Otherwise it is answered with text.
	NoPathIsStatus bool
	// RoutesDiscovery says of discovery what Dialect.RoutesMethods says of objects.
	RoutesDiscovery bool
	// CBORDiscovery says that a server that has CBOR has it for the discovery of a version, too.
	CBORDiscovery bool
	// OpenAPIOfDiscovery says that OpenAPI describes the discovery of the group, too.
	OpenAPIOfDiscovery bool
	// TypedOpenAPI says that the document of a version is that of Go types: its title,
	// how clients say who they are, and which kinds share its options.
	TypedOpenAPI bool
}

// Custom is the Dialect of custom resources, and that of a Definition that says nothing
// else.
var Custom = Dialect{}

// CompiledIn is the Dialect of the kinds that are compiled into a kube-apiserver.
var CompiledIn = Dialect{
	RoutesMethods:        true,
	RoutesSubresources:   true,
	CountsByPath:         true,
	SortsVerbs:           true,
	OmitsResponseGroup:   true,
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

// or has what d or other has.
func (d GroupDialect) or(other GroupDialect) GroupDialect {
	return GroupDialect{
		NoPathIsStatus:     d.NoPathIsStatus || other.NoPathIsStatus,
		RoutesDiscovery:    d.RoutesDiscovery || other.RoutesDiscovery,
		CBORDiscovery:      d.CBORDiscovery || other.CBORDiscovery,
		OpenAPIOfDiscovery: d.OpenAPIOfDiscovery || other.OpenAPIOfDiscovery,
		TypedOpenAPI:       d.TypedOpenAPI || other.TypedOpenAPI,
	}
}

// Dialect is how the group answers. A nil group has none of its own.
func (g *Group) Dialect() (of GroupDialect) {
	if g == nil {
		return of
	}
	for _, d := range g.Definitions {
		of = of.or(d.Dialect.Group)
	}
	return of
}

// DialectOf is how a version of the group answers.
func (g *Group) DialectOf(version string) (of GroupDialect) {
	for _, d := range g.Definitions {
		if slices.ContainsFunc(d.Versions, func(v *Version) bool { return v.Name == version && v.Served }) {
			of = of.or(d.Dialect.Group)
		}
	}
	return of
}
