package openapi

import (
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"reflect"
	"slices"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/model"
)

// A parameter is a path or query parameter of an operation.
type parameter struct {
	name string
	v3   raw
	v2   fields // or a reference to a shared definition
}

func newParameter(in, name, description, typ string) parameter {
	v3 := fields{
		"name": name, "in": in,
		"schema": fields{"type": typ, "uniqueItems": true},
	}
	v2 := fields{"name": name, "in": in, "type": typ, "uniqueItems": true}
	for _, f := range []fields{v3, v2} {
		if description != "" {
			f["description"] = description
		}
		if in == "path" {
			f["required"] = true
		}
	}
	return parameter{name: name, v3: appendJSON(nil, v3), v2: v2}
}

// optionParameters returns the query parameters of a type of options: its fields of plain types,
// with their documentation.
func optionParameters(options resource.Options) []parameter {
	var out []parameter
	t := reflect.TypeOf(options)
	doc := model.Docs(t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" {
			continue
		}
		typ := f.Type
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		switch typ.Kind() {
		case reflect.Bool:
			out = append(out, newParameter("query", name, doc[name], "boolean"))
		case reflect.Int32, reflect.Int64:
			out = append(out, newParameter("query", name, doc[name], "integer"))
		case reflect.String:
			out = append(out, newParameter("query", name, doc[name], "string"))
		}
	}
	return out
}

// parameters has the parameters of all kinds of operations.
type parameters struct {
	get, list, create, update, patch, remove []parameter

	pretty, namespace, path parameter

	removeBody, patchBody parameter // of OpenAPI v2

	shared fields // referenced by OpenAPI v2, by name
}

func newParameters() *parameters {
	p := &parameters{
		get:    optionParameters(metav1.GetOptions{}),
		list:   optionParameters(metav1.ListOptions{}),
		create: optionParameters(metav1.CreateOptions{}),
		update: optionParameters(metav1.UpdateOptions{}),
		patch:  optionParameters(metav1.PatchOptions{}),
		remove: optionParameters(metav1.DeleteOptions{}),
		pretty: newParameter("query", "pretty", "If 'true', then the output is pretty printed. "+
			"Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget).", "string"),
		namespace:  newParameter("path", "namespace", "object name and auth scope, such as for teams and projects", "string"),
		path:       newParameter("path", "path", "path to the resource", "string"),
		removeBody: bodyParameter(deleteOptions, false),
		patchBody:  bodyParameter(patchModel, true),
	}
	p.share()
	return p
}

// share moves parameters that are common to several kinds into the shared definitions of OpenAPI
// v2. Parameters that clients look for to detect features stay inline.
func (p *parameters) share() {
	p.shared = fields{}
	for _, list := range [][]parameter{p.get, p.list, p.create, p.update, p.patch, p.remove} {
		for i := range list {
			if list[i].name != "dryRun" && list[i].name != "fieldValidation" {
				list[i].defineIn(p.shared)
			}
		}
	}
	for _, one := range []*parameter{&p.pretty, &p.namespace, &p.removeBody, &p.patchBody} {
		one.defineIn(p.shared)
	}
}

// connection returns the query parameters of a subresource, and its path parameter if below is
// set. OpenAPI v2 refers to all of them.
func (p *parameters) connection(s *resource.Subresource, below bool, shared fields) (out []parameter) {
	if below {
		out = append(out, p.path)
	}
	if s.Options != nil {
		out = append(out, optionParameters(s.Options)...)
	}
	for i := range out {
		out[i].defineIn(shared)
	}
	return out
}

// defineIn moves the OpenAPI v2 parameter to shared and puts a reference in its place. The name
// ends in a hash, because parameters of one name may differ.
func (p *parameter) defineIn(shared fields) {
	var known spec.Parameter
	if err := json.Unmarshal(appendJSON(nil, p.v2), &known); err != nil {
		panic("openapi: " + err.Error()) // It was a parameter.
	}
	hash := fnv.New64()
	hash.Write(encode(known))
	name := known.Name + "-" + base64.URLEncoding.EncodeToString(hash.Sum(nil)[:6])
	shared[name] = p.v2
	p.v2 = fields{"$ref": "#/parameters/" + name}
}

// body returns the parameter for the request body.
func (p *parameters) body(schema string, required bool) parameter {
	switch schema {
	case deleteOptions:
		return p.removeBody
	case patchModel:
		return p.patchBody
	default:
		return bodyParameter(schema, required)
	}
}

// bodyParameter returns the request body as an OpenAPI v2 parameter.
func bodyParameter(schema string, required bool) parameter {
	f := fields{"name": "body", "in": "body", "schema": fields{"$ref": v2RefPrefix + schema}}
	if required {
		f["required"] = true
	}
	return parameter{name: "body", v2: f}
}

// removeAll returns the parameters of deletecollection on a native resource. Unlike that of a
// custom resource, it documents DeleteOptions.
func (p *parameters) removeAll() []parameter {
	out := slices.DeleteFunc(slices.Clone(p.list), func(p parameter) bool {
		return p.name == "watch" || p.name == "allowWatchBookmarks"
	})
	return append(out, p.remove...)
}

// share removes the parameters that all operations of a path have, and returns them.
func share(operations []operation) (common []parameter) {
	for _, p := range operations[0].parameters {
		everywhere := true
		for _, o := range operations[1:] {
			everywhere = everywhere && slices.ContainsFunc(o.parameters, p.same)
		}
		if everywhere {
			common = append(common, p)
		}
	}
	for i := range operations {
		operations[i].parameters = slices.DeleteFunc(operations[i].parameters, func(p parameter) bool {
			return slices.ContainsFunc(common, p.same)
		})
	}
	return common
}

func (p parameter) same(q parameter) bool { return p.name == q.name }

func v3Parameters(list []parameter) []raw {
	return inOrder(list, func(p parameter) raw { return p.v3 })
}

func v2Parameters(list []parameter) []fields {
	return inOrder(list, func(p parameter) fields { return p.v2 })
}

// inOrder returns a form of each parameter, sorted by name.
func inOrder[T any](list []parameter, form func(parameter) T) []T {
	sort.SliceStable(list, func(i, k int) bool { return list[i].name < list[k].name })
	out := make([]T, len(list))
	for i := range list {
		out[i] = form(list[i])
	}
	return out
}
