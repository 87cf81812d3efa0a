package openapi

import "strings"

// connect is the action of operations on a subresource with a Connecter.
const connect = "connect"

// methods are the HTTP methods of verbs, in no particular order.
var methods = map[string]string{"get": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}

// addConnection adds the paths of a subresource with a Connecter. Paths below it take every
// method.
func (o *operations) addConnection(paths *pathItems, path string, can func(string) bool) {
	if o.subresource.Kind.Kind == "" {
		paths.add(path, o.text())
		return
	}
	var all []string
	for verb, method := range methods {
		if can(verb) {
			all = append(all, method)
		}
	}
	if o.subresource.PathsBelow {
		all = append(all, "head", "options")
	}
	add := func(path string, below bool) {
		var made []operation
		for _, method := range all {
			made = append(made, o.connect(method, below))
		}
		paths.add(path, made...)
	}
	add(path, false)
	if o.subresource.PathsBelow {
		add(path+"/{path}", true)
	}
}

func (o *operations) connect(method string, below bool) operation {
	suffix := ""
	if below {
		suffix = "WithPath"
	}
	op := o.make(method, connect, connect, capitalized(method), suffix,
		"connect "+strings.ToUpper(method)+" requests to "+o.subject()+o.definition.Kind, o.params.connection(o.subresource, below, o.shared))
	return op.returns("", o.bodies, "200")
}

// text returns the operation that reads text about an object, such as a log.
func (o *operations) text() operation {
	media := append([]string{"text/plain"}, o.answers...)
	return o.make("get", "get", "read", "", "", "read "+o.subject()+"the specified "+o.definition.Kind,
		o.params.connection(o.subresource, false, o.shared)).returns("", media, "200")
}
