package discovery

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A parameter is one of an operation's, in its path or its query.
type parameter struct {
	name string
	json raw
}

func newParameter(in, name, description, typ string) parameter {
	f := fields{
		"name": name, "in": in,
		"schema": fields{"type": typ, "uniqueItems": true},
	}
	if description != "" {
		f["description"] = description
	}
	if in == "path" {
		f["required"] = true
	}
	return parameter{name, appendJSON(nil, f)}
}

// optionParameters are the query parameters of a type of options: its fields of
// plain types, with the words of its documentation.
func optionParameters(options interface{ SwaggerDoc() map[string]string }) []parameter {
	var out []parameter
	doc := options.SwaggerDoc()
	t := reflect.TypeOf(options)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" {
			continue
		}
		typ := f.Type
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch typ.Kind() {
		case reflect.Bool:
			out = append(out, newParameter("query", name, doc[name], "boolean"))
		case reflect.Int64:
			out = append(out, newParameter("query", name, doc[name], "integer"))
		case reflect.String, reflect.Slice:
			out = append(out, newParameter("query", name, doc[name], "string"))
		}
	}
	return out
}

// parameters are those of all kinds of operations.
type parameters struct {
	get, list, create, update, patch, remove []parameter

	pretty, namespace parameter
}

func newParameters() *parameters {
	return &parameters{
		get:    optionParameters(metav1.GetOptions{}),
		list:   optionParameters(metav1.ListOptions{}),
		create: optionParameters(metav1.CreateOptions{}),
		update: optionParameters(metav1.UpdateOptions{}),
		patch:  optionParameters(metav1.PatchOptions{}),
		remove: optionParameters(metav1.DeleteOptions{}),
		pretty: newParameter("query", "pretty", "If 'true', then the output is pretty printed. "+
			"Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget).", "string"),
		namespace: newParameter("path", "namespace", "object name and auth scope, such as for teams and projects", "string"),
	}
}

// removeAll are the parameters of deletecollection on a native resource, which
// unlike the one on a custom resource says that it takes the options of a delete.
func (p *parameters) removeAll() []parameter {
	out := slices.DeleteFunc(slices.Clone(p.list), func(p parameter) bool {
		return p.name == "watch" || p.name == "allowWatchBookmarks"
	})
	return append(out, p.remove...)
}

// share takes from the operations of one path the parameters that all of them
// have.
func share(operations []operation) (common []raw) {
	var shared []parameter
	for _, p := range operations[0].parameters {
		everywhere := true
		for _, o := range operations[1:] {
			everywhere = everywhere && slices.ContainsFunc(o.parameters, p.same)
		}
		if everywhere {
			shared = append(shared, p)
		}
	}
	for i := range operations {
		operations[i].parameters = slices.DeleteFunc(operations[i].parameters, func(p parameter) bool {
			return slices.ContainsFunc(shared, p.same)
		})
	}
	return sorted(shared)
}

func (p parameter) same(q parameter) bool { return p.name == q.name }

func sorted(list []parameter) []raw {
	slices.SortFunc(list, func(a, b parameter) int { return cmp.Compare(a.name, b.name) })
	out := make([]raw, len(list))
	for i := range list {
		out[i] = list[i].json
	}
	return out
}
