// Package resource describes a kind completely enough to serve it.
//
// A Definition describes one resource, and a Set has the Definitions that are served at one
// moment. Both are immutable once they are in use; a Catalog holds the current Set. A
// CustomResourceDefinition compiles to a Definition, and a built-in kind is one, so no package
// above this one needs to distinguish the two.
//
// The package knows names and versions. Schemas, cells of tables and the behaviour of a kind
// during a write are functions that other packages provide.
package resource

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/view"
)

// A Definition describes one resource.
type Definition struct {
	Group      string
	Plural     string
	Singular   string
	Kind       string
	ListKind   string
	ShortNames []string
	Categories []string
	Namespaced bool

	// UID distinguishes a resource from a deleted one of the same name: the uid of the
	// CustomResourceDefinition, "" for a built-in.
	UID string
	// GroupPriority orders groups in discovery, highest first.
	GroupPriority int

	// Dialect has the differences between native and custom kinds.
	Dialect Dialect
	// Gate is a feature gate without which no version is served, or "".
	Gate gate.Name

	// Versions in order of preference. Exactly one is the storage version.
	Versions []*Version
	// Order has the versions in the order of the CustomResourceDefinition; nil if that is the
	// order of preference.
	Order []*Version

	// StoredAs is the kind in which kube-apiserver stores the objects, if it is none of the
	// versions here. Discovery has a hash of it, and errors about an object name it.
	StoredAs schema.GroupVersionKind

	// StoragePrefix is the prefix of the keys of all objects: a CustomPrefix or a BuiltInPrefix.
	StoragePrefix string

	// Verbs of the resource; nil for AllVerbs.
	Verbs []string

	// ReturnsDeleted answers a delete with the object instead of a Status.
	ReturnsDeleted bool
	// OwnsNothing: a deletion never waits for dependents, whatever the client asks for.
	OwnsNothing bool
	// Uncached kinds are read from the store by Kubernetes. There, a malformed resourceVersion is
	// a bad request, and a future one is an error at once.
	Uncached bool
	// HasGeneration counts changes of the spec in metadata.generation.
	HasGeneration bool
	// GenerationGate is a feature gate without which HasGeneration is false, or "".
	GenerationGate gate.Name
	// LabelError returns the error for an unsupported field selector; nil for the usual one.
	LabelError func(apiVersion, label string) string
	// NoNamespaceLabel: field selectors do not support metadata.namespace.
	NoNamespaceLabel bool
	// CountsEmpty counts an added empty list or map as a change, although it is not stored.
	CountsEmpty bool
	// CountsDropped counts changes that the kind drops as changes.
	CountsDropped bool

	// Since is the revision from which objects are stored as this Definition serves them: pruned
	// and defaulted by the schema of its storage version. Older objects are pruned and defaulted
	// when they are read.
	CompleteSince int64
	// CheckOnRead: objects of any revision may be stored in another form, because other programs
	// write to the store, or because an object that was written in another version lacks the
	// defaults of the storage version. Each object is then checked when it is first read.
	CheckOnRead bool
	// Terminating rejects new objects: the resource is being deleted.
	Terminating bool

	// Convert converts objects, which it may change, to a version, and returns them in order:
	// all, or none with an error. Nil if versions differ only in their apiVersion and schema.
	Convert func(ctx context.Context, objs []map[string]any, version string) ([]map[string]any, error)
	// ConversionClock returns the current number of a clock, and the oldest number from which results of
	// Convert are still valid. Nil if results of Convert are valid for ever.
	ConversionClock func() (since, at int64)

	// Strategy has the hooks of the kind.
	Strategy

	lineage  *lineage
	identity any
}

// AllVerbs are the default verbs, in the order of discovery.
var AllVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// customVerbs are all verbs in the order in which Kubernetes lists them for custom resources.
var customVerbs = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}

// ListedVerbs returns the verbs of the resource, in the order of discovery.
func (d *Definition) ListedVerbs() []string {
	switch {
	case d.Verbs != nil:
		return d.Verbs
	case d.Dialect.SortsVerbs:
		return AllVerbs
	default:
		return customVerbs
	}
}

// A Version describes one version of a resource.
type Version struct {
	Name    string
	Served  bool
	Storage bool
	// Priority orders the versions of a group in discovery, highest first.
	Priority int

	// Deprecated versions answer with DeprecationWarning in a Warning header.
	Deprecated         bool
	DeprecationWarning string
	// RemovedRelease is the first release of Kubernetes without the deprecated version; "" if
	// unknown.
	RemovedRelease string

	// Introduced and Removed are the minor releases of Kubernetes 1 that added the version and that end it; 0 for
	// none.
	Introduced, Removed int
	// Pinned is the storage version in every release. Without one, the storage version depends on the release.
	Pinned bool

	// Lenient versions have ReturnsDeleted and AllowUnconditionalUpdate, which their successor
	// dropped, whatever the Definition says.
	Lenient bool

	// Schema of the version.
	Schema Schema
	// Fingerprint changes whenever the Model of the Schema changes, so that a change is noticed
	// without building the Model. Empty if it is not cheap to compute.
	Fingerprint string
	// New returns an empty object of the version's Go type; nil if there is none. It says nothing
	// about the protocol of the kind: see Dialect.
	New func() runtime.Object

	// Columns returns the columns of a Table, after the name. If one of them has the format name,
	// the name is not added. Nil for none.
	Columns func() []view.Column
	// RowConditions returns the conditions of a row. Nil for none.
	RowConditions func(obj map[string]any) []metav1.TableRowCondition
	// DefaultOf returns the name of the default object of a list, which its Table marks, or "".
	// Nil if the kind has no default object.
	DefaultOf func(objs []map[string]any) string
	// CompareRows orders the rows of a Table; nil keeps the order of the store. Other forms of a
	// list always have that order.
	CompareRows func(a, b map[string]any) int
	// Revert reverts changes that a write of the resource must not make or, on create, must not
	// set. Nil reverts nothing.
	Revert func(ctx context.Context, c *Change)
	// ResetFields names the top-level fields that Revert reverts as a whole. A write of the
	// resource does not gain their ownership.
	ResetFields []string
	// ResetGate is a feature gate without which there are no ResetFields, or "".
	ResetGate gate.Name
	// Creater handles creates of the resource, and stores nothing. Its Definition has only the
	// verb create.
	Creater Creater
	// Reader computes the objects of the resource, and stores nothing.
	Reader Reader
	// Subresources, in the order of discovery.
	Subresources []Subresource
	// SelectableFields of field selectors, besides metadata.name and metadata.namespace, by name.
	SelectableFields map[string]func(obj map[string]any) string

	derived sync.Map
}

// A Subresource is a second path to an object, with its own rules about changes.
type Subresource struct {
	Name  string
	Verbs []string
	// Kind is read and written at the subresource, if it is not the kind of the object.
	Kind schema.GroupVersionKind
	// Revert reverts changes that a write of the subresource must not make.
	Revert func(ctx context.Context, c *Change)
	// Fields are the paths that Revert leaves, such as status or spec.containers.*.resources; nil
	// means all. A write of the subresource neither gains nor takes the ownership of other
	// fields.
	Fields []string
	// Validate replaces that of the Strategy for subresources with their own rules.
	Validate func(ctx context.Context, c *Change) field.ErrorList
	// Warn replaces that of the Strategy in the same way.
	Warn func(ctx context.Context, c *Change) []string
	// NoTable: the subresource has no Table.
	NoTable bool
	// Definition describes Kind, in one version, if objects of it are read or written.
	Definition *Definition
	// Projection converts between the object and Kind.
	Projection *Projection
	// Creater handles creates, whose bodies are of Kind.
	Creater Creater
	// Connecter handles all requests with one of the Verbs and, if PathsBelow is set, those for
	// paths below the subresource. Without a Kind, its answer is text about the object.
	Connecter  Connecter
	PathsBelow bool
	// Options is an empty value of the Go type of the Connecter's query parameters, or nil;
	// ReadOptions parses them. Admission sees them.
	Options     Options
	ReadOptions func(query url.Values) (runtime.Object, error)
	// Reads: the Connecter only reads, so admission is not called.
	Reads bool
}

// Options is a Go type with documented fields.
type Options interface{ SwaggerDoc() map[string]string }

// A Projection shows an object as one of another kind, and applies changes of that to the object.
type Projection struct {
	// Show returns the projection of obj for a read.
	Show func(obj map[string]any) (map[string]any, error)
	// Open returns the projection of obj for a change, with its managedFields. It is a deep copy.
	Open func(obj map[string]any) (map[string]any, error)
	// Merge applies shown, a changed result of Open, to obj.
	Merge func(obj, shown map[string]any) error
}

// HasGoType reports whether the version has a Go type.
func (v *Version) HasGoType() bool { return v.New != nil }

// Derived returns the result of make for the version, computed once, under a key that its caller
// owns. It lives as long as the version.
func (v *Version) Derived(key any, make func() any) any {
	found, ok := v.derived.Load(key)
	if !ok { // of concurrent callers one computes it
		found, _ = v.derived.LoadOrStore(key, &derivation{})
	}
	d := found.(*derivation)
	d.once.Do(func() { d.value = make() }) // does not retain make
	return d.value
}

type derivation struct {
	once  sync.Once
	value any
}

// A Shaped Schema has a comparable shape. Schemas with equal shapes complete, prune and default
// objects alike; with different shapes they may do so too.
type Shaped interface{ Shape() any }

// alikeKey is the key of a cached result of Alike.
type alikeKey struct{ *Version }

// Alike reports whether v and another version of the resource are known to prune and default
// objects alike.
func (v *Version) Alike(other *Version) bool {
	return v.Derived(alikeKey{other}, func() any {
		a, ok := v.Schema.(Shaped)
		b, also := other.Schema.(Shaped)
		return ok && also && a.Shape() == b.Shape()
	}).(bool)
}

// SubresourceAt returns the subresource at a path below an object, and the rest of that path; nil
// if there is none.
func (v *Version) SubresourceAt(path string) (s *Subresource, below string) {
	if s = v.Subresource(path); s != nil {
		return s, ""
	}
	if i := strings.IndexByte(path, '/'); i > 0 {
		if s = v.Subresource(path[:i]); s != nil && s.PathsBelow {
			return s, path[i:]
		}
	}
	return nil, ""
}

// Subresource returns the subresource of that name, or nil.
func (v *Version) Subresource(name string) *Subresource {
	for i := range v.Subresources {
		if v.Subresources[i].Name == name {
			return &v.Subresources[i]
		}
	}
	return nil
}

// Schema is the schema of one version. An implementation may compile lazily. Objects are changed
// in place.
type Schema interface {
	// Complete completes an object of a client: it rejects wrong types, prunes unknown fields and
	// returns their paths, and adds defaults. The error is a Status.
	Complete(obj map[string]any) (out map[string]any, unknown []string, err error)
	// Prune removes unknown fields, and returns their paths, sorted.
	Prune(obj map[string]any) (removed []string)
	// Default drops nulls that the schema does not allow, then adds defaults.
	Default(obj map[string]any)
	// Validate returns all errors of obj. old is the object that it replaces, or nil.
	Validate(ctx context.Context, obj, old map[string]any) field.ErrorList
	// Model returns the published form.
	Model() view.Model
}

// A StatusSchema is a Schema with its own validation for writes of the status. obj is the whole
// resulting object.
type StatusSchema interface {
	ValidateStatus(ctx context.Context, obj, old map[string]any) field.ErrorList
}

// A PartedSchema is a Schema that can validate embedded objects and the uniqueness of list
// elements separately.
type PartedSchema interface {
	ValidateParts(ctx context.Context, obj, old map[string]any) field.ErrorList
}

// A RuledSchema is a Schema with rules. They run last, because their results depend on all other
// errors.
type RuledSchema interface {
	// ValidateRules returns the errors of the rules for obj. found has all other errors.
	ValidateRules(ctx context.Context, obj, old map[string]any, found field.ErrorList) field.ErrorList
}

// A FillingSchema is a Schema that can add defaults and change nothing else but metadata, so that
// an applied null is kept for validation.
type FillingSchema interface {
	Fill(obj map[string]any)
	// HasNulls reports whether obj has nulls that Default drops.
	HasNulls(obj map[string]any) bool
}

// A DroppingSchema is a Schema whose Complete keeps values that storage drops, such as empty
// lists and maps and fractions of seconds: they count during the write. Its methods do not change
// obj.
type DroppingSchema interface {
	// DropUnstored returns obj as a read from storage would, and reports whether it differs.
	DropUnstored(obj map[string]any) (out map[string]any, dropped bool)
	// DropUnwritten is DropUnstored, but keeps empty lists and maps that the type writes.
	DropUnwritten(obj map[string]any) map[string]any
	// DropEmpty does the part of DropUnstored about lists, maps and bytes.
	DropEmpty(obj map[string]any) map[string]any
	// DropEmptyBytes does the part of DropUnstored about bytes.
	DropEmptyBytes(obj map[string]any) map[string]any
}

// New completes d and returns it. Every Definition is created by New.
func New(d Definition) *Definition {
	d.lineage = &lineage{}
	if d.identity = d.lineage; d.Dialect == CompiledIn {
		d.identity = name{d.Group, d.Plural}
	}
	return &d
}

// A lineage is the identity of a Definition and of its continuations.
type lineage struct{ _ byte }

// Identity is equal for Definitions that show objects in the same way: those of one compiled-in kind, and a
// Definition with its continuations. It is a key for data that is derived from an object, and keeps no
// Definition in memory.
func (d *Definition) Identity() any { return d.identity }

// Continue returns a changed copy of d that replaces d without disturbing its users: neither is
// retired before both have left the Set of a Catalog. It is for changes that are invisible to
// readers of objects.
func (d *Definition) Continue(change func(*Definition)) *Definition {
	c := *d
	change(&c)
	return &c
}

// TableColumns returns the columns of a Table of v, after the name.
func (v *Version) TableColumns() []view.Column {
	if v.Columns == nil {
		return nil
	}
	return v.Columns()
}

// GroupResource returns the group and plural of the resource.
func (d *Definition) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: d.Group, Resource: d.Plural}
}

// GroupVersionKind returns the kind in a version.
func (d *Definition) GroupVersionKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: d.Group, Version: version, Kind: d.Kind}
}

// ErrorKind returns the kind for errors about an object.
func (d *Definition) ErrorKind() schema.GroupKind {
	if !d.StoredAs.Empty() {
		return d.StoredAs.GroupKind()
	}
	return schema.GroupKind{Group: d.Group, Kind: d.Kind}
}

// APIVersion returns the apiVersion of an object in a version.
func (d *Definition) APIVersion(version string) string {
	return schema.GroupVersion{Group: d.Group, Version: version}.String()
}

// EncodingOf returns the kind in which kube-apiserver stores the objects. It is empty for a kind that is not stored.
func EncodingOf(d *Definition) schema.GroupVersionKind {
	v := d.StorageVersion()
	switch {
	case !v.Served && !d.Dialect.TellsUnservedStorage, v.Creater != nil, v.Reader != nil:
		return schema.GroupVersionKind{}
	case d.StoredAs.Empty():
		return d.GroupVersionKind(v.Name)
	}
	return d.StoredAs
}

// IsAPIVersion reports whether apiVersion is that of an object in a version.
func (d *Definition) IsAPIVersion(apiVersion, version string) bool {
	if d.Group == "" {
		return apiVersion == version
	}
	n := len(d.Group)
	return len(apiVersion) == n+1+len(version) && apiVersion[:n] == d.Group && apiVersion[n] == '/' && apiVersion[n+1:] == version
}

// ReturnsDeletedIn reports whether a delete in a version answers with the object.
func (d *Definition) ReturnsDeletedIn(v *Version) bool { return d.ReturnsDeleted || v.Lenient }

// Version returns the version of that name, or nil.
func (d *Definition) Version(name string) *Version {
	i := slices.IndexFunc(d.Versions, func(v *Version) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return d.Versions[i]
}

// VersionNames returns the names of all versions, including those that are not served.
func (d *Definition) VersionNames() []string {
	names := make([]string, len(d.Versions))
	for i, v := range d.Versions {
		names[i] = v.Name
	}
	return names
}

// Listed returns all versions in their listed order.
func (d *Definition) Listed() []*Version {
	if d.Order != nil {
		return d.Order
	}
	return d.Versions
}

// StorageVersion returns the version objects are stored in.
func (d *Definition) StorageVersion() *Version {
	i := slices.IndexFunc(d.Versions, func(v *Version) bool { return v.Storage })
	return d.Versions[i]
}

// Served reports whether any version is served.
func (d *Definition) Served() bool {
	return d.FirstServed() != nil
}

// FirstServed returns the first version that is served; nil if none is.
func (d *Definition) FirstServed() *Version {
	if i := slices.IndexFunc(d.Versions, func(v *Version) bool { return v.Served }); i >= 0 {
		return d.Versions[i]
	}
	return nil
}

// Allows reports whether the resource supports a verb.
func (d *Definition) Allows(verb string) bool {
	if d.Verbs == nil {
		return slices.Contains(AllVerbs, verb)
	}
	return slices.Contains(d.Verbs, verb)
}

// Stored reports whether objects of the resource are stored. Others are computed on a read, or
// are answers to a create.
func (d *Definition) Stored() bool {
	v := d.StorageVersion()
	return v != nil && v.Creater == nil && v.Reader == nil
}

// Key returns the key of an object. namespace is "" for a cluster-scoped one.
func (d *Definition) Key(namespace, name string) string {
	return d.NamespacePrefix(namespace) + name
}

// NamespacePrefix returns the prefix of the keys of all objects in a namespace, or of all objects
// if namespace is "".
func (d *Definition) NamespacePrefix(namespace string) string {
	if namespace == "" {
		return d.StoragePrefix
	}
	return d.StoragePrefix + namespace + "/"
}

// Split returns the namespace and name of the object stored at key.
func (d *Definition) Split(key string) (namespace, name string) {
	name = strings.TrimPrefix(key, d.StoragePrefix)
	if d.Namespaced {
		namespace, name, _ = strings.Cut(name, "/")
	}
	return namespace, name
}
