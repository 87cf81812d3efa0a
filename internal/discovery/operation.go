package discovery

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/resource"
)

// An operation is one method on one path.
type operation struct {
	method     string // in lower case
	fields     fields
	parameters []parameter
}

// A style is how Kubernetes describes the operations on a resource: one way for
// a native resource, another for a custom one.
type style struct {
	bodies  []string // media types of what is sent
	patches []string // and of a patch
	answers []string // media types of what is returned
	lists   []string // and of what may be a watch

	list          string // what listing is called
	get           []parameter
	removeAll     []parameter
	removeAllBody bool // deletecollection takes DeleteOptions
	patchCreates  bool // a patch may answer 201
	watches       bool // has the paths below /watch
	subresourceID bool // an operation on a subresource is of the subresource's kind
}

func newStyles(p *parameters) (custom, native *style) {
	custom = &style{
		bodies:  []string{"application/json", "application/yaml"},
		patches: []string{"application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"},
		answers: []string{"application/json", "application/yaml"},
		lists:   []string{"application/json", "application/yaml"},

		list:      "list",
		get:       p.get,
		removeAll: p.list,
	}
	native = &style{
		bodies:  []string{"*/*"},
		patches: append(slices.Clip(custom.patches), "application/strategic-merge-patch+json"),
		answers: []string{"application/json", "application/vnd.kubernetes.protobuf", "application/yaml"},
		lists: []string{
			"application/json", "application/json;stream=watch", "application/vnd.kubernetes.protobuf",
			"application/vnd.kubernetes.protobuf;stream=watch", "application/yaml",
		},

		list:          "list or watch",
		removeAll:     p.removeAll(),
		removeAllBody: true,
		patchCreates:  true,
		watches:       true,
		subresourceID: true,
	}
	return custom, native
}

// operations makes the operations on one resource in one version.
type operations struct {
	*style
	params     *parameters
	definition *resource.Definition
	version    string
	item, list string // names of the schemas

	// Of the path at hand.
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

// gvk is the kind that an operation is marked with.
func (o *operations) gvk() schema.GroupVersionKind {
	if o.subresource != nil && o.subresourceID && o.subresource.Kind.Kind != "" {
		return o.subresource.Kind
	}
	return o.definition.GroupVersionKind(o.version)
}

// make returns an operation. prefix and suffix are put around the name of the
// kind in the operation's name.
func (o *operations) make(method, action, verb, prefix, suffix, description string, p []parameter) operation {
	d, gvk := o.definition, o.gvk()
	if o.namespaced {
		prefix += "Namespaced"
	}
	if o.subresource != nil {
		suffix += capitalized(o.subresource.Name)
	}
	p = append(slices.Clip(p), o.params.pretty)
	if o.named {
		p = append(p, newParameter("path", "name", "name of the "+gvk.Kind, "string"))
	}
	if o.namespaced {
		p = append(p, o.params.namespace)
	}
	return operation{method: method, parameters: p, fields: fields{
		"tags":                []string{tagOf(d.Group, o.version)},
		"description":         description,
		"operationId":         verb + operationPart(d.Group, o.version) + prefix + d.Kind + suffix,
		"x-kubernetes-action": action,
		"x-kubernetes-group-version-kind": fields{
			"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind,
		},
	}}
}

func (o operation) takes(schema string, media []string, required bool) operation {
	body := fields{"content": content(schema, media)}
	if required {
		body["required"] = true
	}
	o.fields["requestBody"] = body
	return o
}

func (o operation) returns(schema string, media []string, codes ...string) operation {
	responses := fields{"401": fields{"description": "Unauthorized"}}
	answer := content(schema, media)
	for _, code := range codes {
		responses[code] = fields{"description": map[string]string{"200": "OK", "201": "Created", "202": "Accepted"}[code], "content": answer}
	}
	o.fields["responses"] = responses
	return o
}

// content says that a body of each media type is of a schema.
func content(schema string, media []string) raw {
	f := fields{}
	for _, m := range media {
		f[m] = fields{"schema": fields{"$ref": refPrefix + schema}}
	}
	return appendJSON(nil, f)
}

func (o *operations) listAll(suffix string) operation {
	return o.make("get", "list", "list", "", suffix, o.style.list+" objects of kind "+o.definition.Kind, o.params.list).
		returns(o.list, o.lists, "200")
}

func (o *operations) create(item string) operation {
	return o.make("post", "post", "create", "", "", "create "+o.subject()+one(o.definition.Kind), o.params.create).
		takes(item, o.bodies, true).returns(item, o.answers, "200", "201", "202")
}

func (o *operations) removeAll() operation {
	op := o.make("delete", "deletecollection", "delete", "Collection", "", "delete collection of "+o.definition.Kind, o.style.removeAll)
	if o.removeAllBody {
		op = op.takes(deleteOptions, o.bodies, false)
	}
	return op.returns(statusModel, o.answers, "200")
}

func (o *operations) get(item string) operation {
	return o.make("get", "get", "read", "", "", "read "+o.subject()+"the specified "+o.definition.Kind, o.style.get).
		returns(item, o.answers, "200")
}

func (o *operations) replace(item string) operation {
	return o.make("put", "put", "replace", "", "", "replace "+o.subject()+"the specified "+o.definition.Kind, o.params.update).
		takes(item, o.bodies, true).returns(item, o.answers, "200", "201")
}

func (o *operations) patch(item string) operation {
	codes := []string{"200"}
	if o.patchCreates {
		codes = append(codes, "201")
	}
	return o.make("patch", "patch", "patch", "", "", "partially update "+o.subject()+"the specified "+o.definition.Kind, o.params.patch).
		takes(patchModel, o.patches, true).returns(item, o.answers, codes...)
}

func (o *operations) remove() operation {
	return o.make("delete", "delete", "delete", "", "", "delete "+o.subject()+one(o.definition.Kind), o.params.remove).
		takes(deleteOptions, o.bodies, false).returns(statusModel, o.answers, "200", "202")
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

// addTo adds the paths of the resource below root, as in /apis/GROUP/VERSION.
func (o operations) addTo(paths fields, root string, v *resource.Version) {
	d := o.definition
	allowed := verbs(d, v)
	can := func(verb string) bool { return slices.Contains(allowed, verb) }
	collection := "/" + d.Plural
	if d.Namespaced {
		if can("list") {
			add(paths, root+collection, o.listAll("ForAllNamespaces"))
		}
		if can("watch") && o.watches {
			add(paths, root+"/watch"+collection, o.watchList("ListForAllNamespaces"))
		}
		o.namespaced = true
		collection = "/namespaces/{namespace}" + collection
	}
	add(paths, root+collection,
		when(can("list"), func() operation { return o.listAll("") }),
		when(can("create"), func() operation { return o.create(o.item) }),
		when(can("deletecollection"), o.removeAll))
	if can("watch") && o.watches {
		add(paths, root+"/watch"+collection, o.watchList("List"))
	}
	o.named = true
	one := collection + "/{name}"
	if can("watch") && o.watches {
		add(paths, root+"/watch"+one, o.watch())
	}
	o.addObject(paths, root+one, o.item, can, true)
	for i := range v.Subresources {
		o.subresource = &v.Subresources[i]
		can := func(verb string) bool { return slices.Contains(o.subresource.Verbs, verb) }
		o.addObject(paths, root+one+"/"+o.subresource.Name, o.subresourceModel(), can, false)
	}
}

// addObject adds the path of an object, or of a subresource of one.
func (o *operations) addObject(paths fields, path, item string, can func(string) bool, whole bool) {
	add(paths, path,
		when(can("get"), func() operation { return o.get(item) }),
		when(can("update"), func() operation { return o.replace(item) }),
		when(can("patch"), func() operation { return o.patch(item) }),
		when(can("delete"), o.remove),
		when(can("create") && !whole, func() operation { return o.create(item) }))
}

// subresourceModel is the schema of what is read and written at a subresource.
func (o *operations) subresourceModel() string {
	if o.subresource.Kind == scaleKind {
		return scaleModel
	}
	return o.item
}

func when(allowed bool, f func() operation) operation {
	if !allowed {
		return operation{}
	}
	return f()
}

// add adds a path with those of the operations that there are.
func add(paths fields, path string, all ...operation) {
	all = slices.DeleteFunc(all, func(o operation) bool { return o.method == "" })
	if len(all) == 0 {
		return
	}
	item := fields{}
	if common := share(all); len(common) > 0 {
		item["parameters"] = common
	}
	for _, o := range all {
		if len(o.parameters) > 0 {
			o.fields["parameters"] = sorted(o.parameters)
		}
		item[strings.ToLower(o.method)] = o.fields
	}
	paths[path] = item
}
