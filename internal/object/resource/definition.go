// Package resource says all that the server needs to know to serve a kind.
//
// A Definition is that knowledge for one resource, and a Set is the Definitions
// that are served at one moment. Both are immutable once they are in use; a
// Catalog holds the Set of now. A CustomResourceDefinition compiles to a
// Definition and a built-in kind is one, so nothing above this package needs to
// know which of the two it is serving.
//
// The package knows names and versions. What a schema does with an object, how
// a cell of a table is computed and what a kind wants done on its way to storage
// are functions that others put in.
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
	"k8s.io/kube-openapi/pkg/validation/spec"
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

	// UID tells a resource from one of the same name before it was deleted: the
	// uid of the CustomResourceDefinition, "" for a built-in.
	UID string
	// GroupPriority orders groups in discovery, the highest first.
	GroupPriority int

	// Dialect is how Kubernetes answers for the kind.
	Dialect Dialect

	// Versions in order of preference. Exactly one is the storage version.
	Versions []*Version
	// Order has the versions in the order in which a CustomResourceDefinition lists them; nil
	// where that is the order of preference.
	Order []*Version

	// StoredAs is what a kube-apiserver stores the objects as, where that is none of
	// the versions here. Discovery gives clients a hash of it, and what is wrong with an
	// object is told of that kind.
	StoredAs schema.GroupVersionKind

	// StoragePrefix begins the key of every object: a CustomPrefix or a BuiltInPrefix.
	StoragePrefix string

	// Verbs that the resource answers; nil for all of AllVerbs.
	Verbs []string

	// ReturnsDeleted answers a delete with the object where others answer with a
	// Status.
	ReturnsDeleted bool
	// OwnsNothing says that a deletion never waits for objects that name the
	// deleted one as their owner, whatever the client asks for.
	OwnsNothing bool
	// Uncached says that Kubernetes reads the kind from its store each time. A resourceVersion that
	// is no number is a bad request there, and one from the future is an error at once.
	Uncached bool
	// HasGeneration says that objects count the changes of what they ask for in
	// metadata.generation.
	HasGeneration bool
	// LabelError words the error for a label that field selectors of a version do not have; nil
	// for the words of most kinds.
	LabelError func(apiVersion, label string) string
	// NoNamespaceLabel says that field selectors do not have metadata.namespace.
	NoNamespaceLabel bool
	// CountsEmpty says that an empty list or map counts as a change where there was
	// none, although it is none again once it was stored.
	CountsEmpty bool
	// CountsDropped says that what the kind drops of a change counts as well.
	CountsDropped bool

	// Since is the revision from which on objects are stored in the form this
	// Definition serves: pruned and defaulted by its storage version's schema.
	// What was stored before is brought into that form when it is read.
	Since int64
	// Unsettled says that objects may be stored in another form at any revision:
	// because others write to the store, or because an object that was written in
	// another version is stored without the defaults of the storage version. Each
	// is then looked through when it is first read.
	Unsettled bool
	// Guard returns the key of what this Definition was made from and the
	// revision it was last seen at. No object is written by a Definition whose
	// source has changed. Nil for a Definition that never changes.
	Guard func() (key string, revision int64)
	// Terminating refuses new objects: the resource is about to go.
	Terminating bool

	// Convert brings objects, which it may change, from the versions they are in
	// into another, and returns them in their order: all, or none with an error.
	// Nil where versions differ in their apiVersion and schema only.
	Convert func(ctx context.Context, objs []map[string]any, version string) ([]map[string]any, error)
	// Moment returns a number for now, which grows with time, and the least number of
	// a moment from which what Convert was asked for then is what it would return
	// now. Nil where what it once returned it always would.
	Moment func() (since, at int64)

	// Strategy is what the kind does with an object that is written.
	Strategy

	life   context.Context // ends when the Definition is retired
	retire context.CancelFunc
}

// AllVerbs are the verbs of a resource that says nothing else, in the order of
// discovery.
var AllVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// customVerbs are all verbs in the order in which Kubernetes lists those of a
// custom resource.
var customVerbs = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}

// ListedVerbs returns the verbs that the resource has, in the order of discovery.
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

	// Deprecated versions answer with DeprecationWarning in a Warning header.
	Deprecated         bool
	DeprecationWarning string
	// RemovedRelease is the release of Kubernetes without a deprecated version; "" if none is named.
	RemovedRelease string

	// Lenient versions keep what their successor has given up: ReturnsDeleted and
	// AllowUnconditionalUpdate hold for them, whatever the Definition says.
	Lenient bool

	// Schema says what an object of this version may be.
	Schema Schema
	// Fingerprint is another one whenever the Schema publishes another Model, so
	// that a change is seen without making the Model. Empty when nobody knows
	// it so cheaply.
	Fingerprint string
	// New returns an empty object of the version's Go type, where there is one. It is
	// for who makes a Go value. How the kind answers is in the Dialect.
	New func() runtime.Object

	// Columns returns those of a Table, after the name. Where one of them has the format
	// name, they are all. Nil for none.
	Columns func() []Column
	// RowConditions says what a Table says of an object beside its columns. Nil for nothing.
	RowConditions func(obj map[string]any) []metav1.TableRowCondition
	// DefaultOf returns the name of the object that counts as the default one of a list, of which a
	// Table says so; "" if none does. Nil where there is no such thing.
	DefaultOf func(objs []map[string]any) string
	// CompareRows orders the rows of a Table; other forms of a list keep the order of the store. Nil
	// keeps that order in Tables too.
	CompareRows func(a, b map[string]any) int
	// Revert undoes what a write of the resource itself may not change or, on create,
	// may not set. Nil undoes nothing.
	Revert func(ctx context.Context, c *Change)
	// ResetFields names the outermost fields that Revert undoes as a whole. Who writes
	// them through the resource itself does not come to own them.
	ResetFields []string
	// Creater answers creates of the resource, of which nothing is stored then. Its
	// Definition has the verb create only.
	Creater Creater
	// Reader computes the objects of the resource, of which nothing is stored then.
	Reader Reader
	// Subresources, in the order of discovery.
	Subresources []Subresource
	// SelectableFields besides metadata.name and metadata.namespace, by the
	// name a field selector uses.
	SelectableFields map[string]func(obj map[string]any) string

	derived sync.Map
}

// A Subresource is a second path to an object, with its own idea of what may
// change through it.
type Subresource struct {
	Name  string
	Verbs []string
	// Kind is what is read and written through the subresource, where that is
	// not the object itself.
	Kind schema.GroupVersionKind
	// Revert undoes what a write through the subresource may not change.
	Revert func(ctx context.Context, c *Change)
	// Fields are the paths of which Revert leaves anything, as in status or
	// spec.containers.*.resources; nil means all. Who writes others through the
	// subresource neither comes to own them nor takes them from anybody.
	Fields []string
	// Validate takes the place of the Strategy's, where what is written through the
	// subresource has rules of its own.
	Validate func(ctx context.Context, c *Change) field.ErrorList
	// Warn takes the place of the Strategy's in the same way.
	Warn func(ctx context.Context, c *Change) []string
	// NoTable says that no Table shows what is read and written through the subresource.
	NoTable bool
	// Definition describes Kind, in one version, where objects of it are read or written.
	Definition *Definition
	// Projection shows the object as one of Kind.
	Projection *Projection
	// Creater answers creates, whose bodies are of Kind.
	Creater Creater
	// Connecter answers every request with one of the Verbs, and where PathsBelow is
	// set, those for paths below the subresource, too. Without a Kind, what it answers is
	// text about the object.
	Connecter  Connecter
	PathsBelow bool
	// Options is an empty value of the Go type whose fields a client of the Connecter gives
	// in the query, or nil, and ReadOptions reads them. Admission sees them.
	Options     Options
	ReadOptions func(query url.Values) (runtime.Object, error)
	// Reads says that who connects only reads something of the object, so that admission
	// is not asked.
	Reads bool
}

// Options are a Go type with the documentation of its fields.
type Options interface{ SwaggerDoc() map[string]string }

// A Projection shows an object as one of another kind, and makes of a change of
// that a change of the object.
type Projection struct {
	// Show returns what a client reads of obj.
	Show func(obj map[string]any) (map[string]any, error)
	// Open returns what a client changes of obj, with its managedFields. It
	// shares nothing with obj that can be changed.
	Open func(obj map[string]any) (map[string]any, error)
	// Merge changes obj into what shown, which came of Open, says.
	Merge func(obj, shown map[string]any) error
}

// HasGoType says that New makes something.
func (v *Version) HasGoType() bool { return v.New != nil }

// Derived returns what make makes of the version, once, under a key that its
// caller owns. It lives as long as the version.
func (v *Version) Derived(key any, make func() any) any {
	found, ok := v.derived.Load(key)
	if !ok { // many may come at once, and only one makes it
		found, _ = v.derived.LoadOrStore(key, &derivation{})
	}
	d := found.(*derivation)
	d.once.Do(func() { d.value = make() }) // so that make is not kept, and costs nobody memory
	return d.value
}

type derivation struct {
	once  sync.Once
	value any
}

// A Shaped Schema has a shape, which is equal for schemas that complete, prune and
// default objects alike, and comparable. Those that differ may be alike, too.
type Shaped interface{ Shape() any }

// alikeKey is where a version keeps whether it is like another one.
type alikeKey struct{ *Version }

// Alike reports whether it is known that v and another version of the resource
// prune and default objects alike.
func (v *Version) Alike(other *Version) bool {
	return v.Derived(alikeKey{other}, func() any {
		a, ok := v.Schema.(Shaped)
		b, also := other.Schema.(Shaped)
		return ok && also && a.Shape() == b.Shape()
	}).(bool)
}

// SubresourceAt returns the subresource that a path after the name of an object leads
// to, and what of the path is below it; nil if it leads nowhere.
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

// Schema is what can be done with the schema of one version. An implementation
// may put off all work until it is asked for the first time. Objects passed in
// are changed in place.
type Schema interface {
	// Complete makes an object that a client sent into one of the schema: it
	// refuses what is of the wrong type, removes what is unknown and says where,
	// and fills in defaults. The error is a Status.
	Complete(obj map[string]any) (out map[string]any, unknown []string, err error)
	// Prune removes what the schema does not know and returns the paths of what
	// it removed, in order.
	Prune(obj map[string]any) (removed []string)
	// Default drops nulls that may not be, then fills in default values.
	Default(obj map[string]any)
	// Validate returns everything that is wrong with obj. old is what it
	// replaces, or nil.
	Validate(ctx context.Context, obj, old map[string]any) field.ErrorList
	// Model returns the published form.
	Model() Model
}

// A StatusSchema is a Schema that validates a write of the status by rules of its
// own. obj is the whole object that results.
type StatusSchema interface {
	ValidateStatus(ctx context.Context, obj, old map[string]any) field.ErrorList
}

// A PartedSchema is a Schema that can be asked about objects in the object and about elements that a
// list may have once only, and about nothing else.
type PartedSchema interface {
	ValidateParts(ctx context.Context, obj, old map[string]any) field.ErrorList
}

// A RuledSchema is a Schema with rules, which are asked last: what they make of an
// object depends on everything else that was found wrong with it.
type RuledSchema interface {
	// ValidateRules returns what the rules have against obj. found is what is
	// wrong with it otherwise.
	ValidateRules(ctx context.Context, obj, old map[string]any, found field.ErrorList) field.ErrorList
}

// A FillingSchema is a Schema that can fill in defaults and leave everything else
// but metadata as it is, so that a null which somebody applied is there to be validated.
type FillingSchema interface {
	Fill(obj map[string]any)
}

// A SettlingSchema is a Schema whose Complete keeps what objects do not have any more once they
// are stored, and which is looked at until then: lists and maps that are there and empty,
// parts of a second. Its methods change nothing in obj.
type SettlingSchema interface {
	// Settle returns obj as it is once it was stored, and reports whether it is another one.
	Settle(obj map[string]any) (out map[string]any, dropped bool)
	// DropUnwritten is Settle, but keeps lists and maps that are empty where the type writes them.
	DropUnwritten(obj map[string]any) map[string]any
	// DropEmpty does of Settle what is about lists, maps and bytes.
	DropEmpty(obj map[string]any) map[string]any
	// DropEmptyBytes does of Settle what is about bytes.
	DropEmptyBytes(obj map[string]any) map[string]any
}

// A Model is a schema as OpenAPI v3 publishes it.
type Model struct {
	// Name of the schema in Schemas, as in io.k8s.api.core.v1.ConfigMap.
	Name string
	// List is the name of the schema of a list of it, in Schemas too.
	List string
	// Keeps says that an object keeps fields that its schema does not know,
	// which an old CustomResourceDefinition may say beside its schema.
	Keeps bool
	// Schemas has the named schemas and every other one they refer to.
	Schemas map[string]*spec.Schema
}

// A Column describes one column of a Table.
type Column struct {
	Name        string
	Type        string
	Format      string
	Description string
	Priority    int32
	// Cell computes the value of the column: nil, a string, int64, float64 or
	// bool, an Age or a TextWithAge.
	Cell func(obj map[string]any) any
}

// An Age is a cell that shows how long ago a timestamp (RFC 3339) was when the
// table is written.
type Age string

// A TextWithAge is a cell that shows an Age between other words. The Age is not empty.
type TextWithAge struct {
	Before string
	At     Age
	After  string
}

// New completes d and returns it. Every Definition is made by New.
func New(d Definition) *Definition {
	d.life, d.retire = context.WithCancel(context.Background())
	return &d
}

// Continue returns a changed copy of d that takes its place without disturbing
// who uses d: neither is retired before both are out of the Catalog's Set. It is
// for changes that those who read objects cannot see.
func (d *Definition) Continue(change func(*Definition)) *Definition {
	c := *d
	change(&c)
	return &c
}

// TableColumns returns the columns of a Table of v, after the name.
func (v *Version) TableColumns() []Column {
	if v.Columns == nil {
		return nil
	}
	return v.Columns()
}

// Retired is closed when d is no longer part of the Catalog's Set: the resource
// is gone, or another Definition describes it now.
func (d *Definition) Retired() <-chan struct{} { return d.life.Done() }

// OnRetired arranges that f is called in a goroutine of its own when d is
// retired. Until then it costs no goroutine. stop gives it up.
func (d *Definition) OnRetired(f func()) (stop func() bool) { return context.AfterFunc(d.life, f) }

// GroupResource names the resource.
func (d *Definition) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: d.Group, Resource: d.Plural}
}

// GroupVersionKind names the kind in a version.
func (d *Definition) GroupVersionKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: d.Group, Version: version, Kind: d.Kind}
}

// ToldKind names the kind in answers about what is wrong with an object.
func (d *Definition) ToldKind() schema.GroupKind {
	if !d.StoredAs.Empty() {
		return d.StoredAs.GroupKind()
	}
	return schema.GroupKind{Group: d.Group, Kind: d.Kind}
}

// APIVersion is the apiVersion of an object in a version.
func (d *Definition) APIVersion(version string) string {
	return schema.GroupVersion{Group: d.Group, Version: version}.String()
}

// IsAPIVersion reports whether apiVersion is that of an object in a version.
func (d *Definition) IsAPIVersion(apiVersion, version string) bool {
	if d.Group == "" {
		return apiVersion == version
	}
	n := len(d.Group)
	return len(apiVersion) == n+1+len(version) && apiVersion[:n] == d.Group && apiVersion[n] == '/' && apiVersion[n+1:] == version
}

// ReturnsDeletedIn reports whether a delete in a version is answered with the object.
func (d *Definition) ReturnsDeletedIn(v *Version) bool { return d.ReturnsDeleted || v.Lenient }

// Version returns the version of that name, or nil.
func (d *Definition) Version(name string) *Version {
	i := slices.IndexFunc(d.Versions, func(v *Version) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return d.Versions[i]
}

// VersionNames returns the names of all versions, of those that are not served, too.
func (d *Definition) VersionNames() []string {
	names := make([]string, len(d.Versions))
	for i, v := range d.Versions {
		names[i] = v.Name
	}
	return names
}

// Listed returns all versions, in the order in which they were listed.
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
	return slices.ContainsFunc(d.Versions, func(v *Version) bool { return v.Served })
}

// Allows reports whether the resource answers a verb.
func (d *Definition) Allows(verb string) bool {
	if d.Verbs == nil {
		return slices.Contains(AllVerbs, verb)
	}
	return slices.Contains(d.Verbs, verb)
}

// Stored reports whether objects of the resource are stored. Others are computed when they are read, or
// are answers to a create.
func (d *Definition) Stored() bool {
	v := d.StorageVersion()
	return v != nil && v.Creater == nil && v.Reader == nil
}

// Key is where an object is stored. namespace is "" for a cluster-scoped one.
func (d *Definition) Key(namespace, name string) string {
	return d.NamespacePrefix(namespace) + name
}

// NamespacePrefix begins the keys of all objects of a namespace, or of all
// objects when namespace is "".
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
