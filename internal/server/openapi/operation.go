package openapi

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/resource"
)

// An operation is one method on one path.
type operation struct {
	method     string // in lower case
	fields     fields // common to both versions of OpenAPI
	parameters []parameter
	body       content   // of the request; its schema is empty if there is none
	required   bool      // whether the body is required
	sent       parameter // the body, for OpenAPI v2
	answer     content
	codes      []string // of successful answers
}

// content is the body of a request or an answer, in any of the media types.
type content struct {
	schema string // its name; "" is a string
	media  []string
}

// A style is Kubernetes' description of the operations on a resource. Native and custom resources
// have different ones.
type style struct {
	// Media types, in the order in which OpenAPI v2 lists them.
	bodies  []string // of requests
	patches []string // of patches
	answers []string // of answers
	lists   []string // of answers that may be a watch

	list          string // verb of a list
	get           []parameter
	removeAll     []parameter
	removeAllBody bool // deletecollection has a body of DeleteOptions
	patchCreates  bool // a patch may answer 201
	watches       bool // has paths below /watch
	subresourceID bool // an operation on a subresource has the subresource's kind
}

// newStyles returns the styles of custom and of built-in resources. cbor adds its media types to the latter.
func newStyles(p *parameters, cbor bool) (custom, native *style) {
	custom = &style{
		bodies:  []string{"application/json", "application/yaml"},
		patches: []string{"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"},
		answers: []string{"application/json", "application/yaml"},
		lists:   []string{"application/json", "application/yaml"},

		list:      "list",
		get:       p.get,
		removeAll: p.list,
	}
	native = &style{
		bodies:  []string{"*/*"},
		patches: slices.Insert(slices.Clone(custom.patches), 2, "application/strategic-merge-patch+json"),
		answers: []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"},
		lists: []string{
			"application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
			"application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch",
		},

		list:          "list or watch",
		removeAll:     p.removeAll(),
		removeAllBody: true,
		patchCreates:  true,
		watches:       true,
		subresourceID: true,
	}
	if cbor {
		native.answers = append(native.answers, "application/cbor")
		native.lists = append(slices.Insert(native.lists, 3, "application/cbor"), "application/cbor-seq")
		native.patches = append(native.patches, "application/apply-patch+cbor")
	}
	return custom, native
}

// operations builds the operations on one resource in one version.
type operations struct {
	*style
	params     *parameters
	definition *resource.Definition
	version    string
	item, list string // names of schemas
	names      func(*resource.Version) (item, list string)
	shared     fields // parameters that OpenAPI v2 refers to

	returnsDeleted bool

	// Of the current path.
	namespaced  bool // below a namespace
	named       bool // of one object
	subresource *resource.Subresource
}

func (o *operations) subject() string {
	if o.subresource != nil {
		return o.subresource.Name + " of "
	}
	return ""
}

// gvk returns the kind in the extension of an operation.
func (o *operations) gvk() schema.GroupVersionKind {
	if o.subresource != nil && o.subresourceID && o.subresource.Kind.Kind != "" {
		return o.subresource.Kind
	}
	return o.definition.GroupVersionKind(o.version)
}

// make returns an operation. Its id has prefix and suffix around the name of the kind.
func (o *operations) make(method, action, verb, prefix, suffix, description string, p []parameter) operation {
	d, gvk := o.definition, o.gvk()
	if o.namespaced {
		prefix += "Namespaced"
	}
	if o.subresource != nil {
		suffix = capitalized(o.subresource.Name) + suffix
	}
	if p = slices.Clip(p); action != connect {
		p = append(p, o.params.pretty)
	}
	if o.named {
		p = append(p, newParameter("path", "name", "name of the "+gvk.Kind, "string"))
	}
	if o.namespaced {
		p = append(p, o.params.namespace)
	}
	return operation{method: method, parameters: p, body: content{media: o.bodies}, fields: fields{
		"tags":                []string{tagOf(d.Group, o.version)},
		"description":         description,
		"operationId":         verb + operationPart(d.Group, o.version) + prefix + d.Kind + suffix,
		"x-kubernetes-action": action,
		"x-kubernetes-group-version-kind": fields{
			"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind,
		},
	}}
}

func (o operation) takes(p *parameters, schema string, media []string, required bool) operation {
	o.body, o.required, o.sent = content{schema, media}, required, p.body(schema, required)
	return o
}

func (o operation) returns(schema string, media []string, codes ...string) operation {
	o.answer, o.codes = content{schema, media}, codes
	return o
}

func (o *operations) listAll(suffix string) operation {
	what := o.style.list
	if !slices.Contains(o.definition.ListedVerbs(), "watch") {
		what = "list"
	}
	return o.make("get", "list", "list", "", suffix, what+" objects of kind "+o.definition.Kind, o.params.list).
		returns(o.list, o.lists, "200")
}

func (o *operations) create(item string) operation {
	return o.make("post", "post", "create", "", "", "create "+o.subject()+one(o.definition.Kind), o.params.create).
		takes(o.params, item, o.bodies, true).returns(item, o.answers, "200", "201", "202")
}

func (o *operations) removeAll() operation {
	op := o.make("delete", "deletecollection", "delete", "Collection", "", "delete collection of "+o.definition.Kind, o.style.removeAll)
	if o.removeAllBody {
		op = op.takes(o.params, deleteOptions, o.bodies, false)
	}
	return op.returns(statusModel, o.answers, "200")
}

func (o *operations) get(item string) operation {
	return o.make("get", "get", "read", "", "", "read "+o.subject()+"the specified "+o.definition.Kind, o.style.get).
		returns(item, o.answers, "200")
}

func (o *operations) replace(item string) operation {
	return o.make("put", "put", "replace", "", "", "replace "+o.subject()+"the specified "+o.definition.Kind, o.params.update).
		takes(o.params, item, o.bodies, true).returns(item, o.answers, "200", "201")
}

func (o *operations) patch(item string) operation {
	codes := []string{"200"}
	if o.patchCreates {
		codes = append(codes, "201")
	}
	return o.make("patch", "patch", "patch", "", "", "partially update "+o.subject()+"the specified "+o.definition.Kind, o.params.patch).
		takes(o.params, patchModel, o.patches, true).returns(item, o.answers, codes...)
}

func (o *operations) remove() operation {
	answer := statusModel
	if o.returnsDeleted && o.definition.Plural != "namespaces" {
		answer = o.item // for a namespace, Kubernetes returns the object but documents a Status
	}
	return o.make("delete", "delete", "delete", "", "", "delete "+o.subject()+one(o.definition.Kind), o.params.remove).
		takes(o.params, deleteOptions, o.bodies, false).returns(answer, o.answers, "200", "202")
}

func (o *operations) watchList(suffix string) operation {
	return o.make("get", "watchlist", "watch", "", suffix, "watch individual changes to a list of "+o.definition.Kind+
		". deprecated: use the 'watch' parameter with a list operation instead.", o.params.list).
		returns(watchEvent, o.lists, "200")
}

func (o *operations) watch() operation {
	return o.make("get", "watch", "watch", "", "", "watch changes to an object of kind "+o.definition.Kind+
		". deprecated: use the 'watch' parameter with a list operation instead,"+
		" filtered to a single item with the 'fieldSelector' parameter.", o.params.list).
		returns(watchEvent, o.lists, "200")
}

// addTo adds the paths of the resource below root, such as /apis/GROUP/VERSION.
func (o operations) addTo(paths *pathItems, root string, v *resource.Version) {
	d := o.definition
	allowed := d.ListedVerbs()
	can := func(verb string) bool { return slices.Contains(allowed, verb) }
	collection := "/" + d.Plural
	if d.Namespaced {
		if can("list") {
			paths.add(root+collection, o.listAll("ForAllNamespaces"))
		}
		if can("watch") && o.watches {
			paths.add(root+"/watch"+collection, o.watchList("ListForAllNamespaces"))
		}
		o.namespaced = true
		collection = "/namespaces/{namespace}" + collection
	}
	paths.add(root+collection,
		when(can("list"), func() operation { return o.listAll("") }),
		when(can("create"), func() operation { return o.create(o.item) }),
		when(can("deletecollection"), o.removeAll))
	if can("watch") && o.watches {
		paths.add(root+"/watch"+collection, o.watchList("List"))
	}
	o.named = true
	one := collection + "/{name}"
	if can("watch") && o.watches {
		paths.add(root+"/watch"+one, o.watch())
	}
	o.addObject(paths, root+one, o.item, can, true)
	for i := range v.Subresources {
		o.subresource = &v.Subresources[i]
		can := func(verb string) bool { return slices.Contains(o.subresource.Verbs, verb) }
		if o.subresource.Connecter != nil {
			o.addConnection(paths, root+one+"/"+o.subresource.Name, can)
			continue
		}
		o.addObject(paths, root+one+"/"+o.subresource.Name, o.subresourceModel(), can, false)
	}
}

// addObject adds the path of an object or a subresource.
func (o *operations) addObject(paths *pathItems, path, item string, can func(string) bool, whole bool) {
	paths.add(path,
		when(can("get"), func() operation { return o.get(item) }),
		when(can("update"), func() operation { return o.replace(item) }),
		when(can("patch"), func() operation { return o.patch(item) }),
		when(can("delete"), o.remove),
		when(can("create") && !whole, func() operation { return o.create(item) }))
}

// subresourceModel returns the name of the schema of a subresource.
func (o *operations) subresourceModel() string {
	switch s := o.subresource; {
	case s.Kind == scaleKind:
		return scaleModel
	case s.Definition != nil:
		item, _ := o.names(s.Definition.StorageVersion())
		return item
	default:
		return o.item
	}
}

func when(allowed bool, f func() operation) operation {
	if !allowed {
		return operation{}
	}
	return f()
}
