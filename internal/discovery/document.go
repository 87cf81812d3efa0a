package discovery

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/resource"
)

// buildDocument makes the OpenAPI document of that name. g and v are the group
// and version that it is about, if it is about any.
func buildDocument(s *shared, name string, g *resource.Group, v string) []byte {
	s.prepare()
	switch {
	case name == "version":
		return s.single("/version/", "version", "getCodeVersion", "get the version information for this server",
			versionModel, []string{"application/json"})
	case name == "apis":
		return s.single("/apis/", "apis", "getAPIVersions", "get available API versions", metaPrefix+"APIGroupList", s.native.answers)
	case name == "api":
		return s.single("/api/", "core", "getCoreAPIVersions", "get available API versions", metaPrefix+"APIVersions", s.native.answers)
	case v == "":
		return s.single("/"+name+"/", tagOf(g.Name, ""), "get"+operationPart(g.Name, "")+"APIGroup",
			"get information of a group", metaPrefix+"APIGroup", s.native.answers)
	default:
		return s.version("/"+name, g, v)
	}
}

// single makes a document of one path that is only read.
func (s *shared) single(path, tag, id, description, model string, media []string) []byte {
	paths := fields{}
	add(paths, path, reading(tag, id, description, model, media))
	find := func(name string) (component, bool) { c, ok := s.components[name]; return c, ok }
	return s.write(true, paths, closure([]string{model}, find))
}

func reading(tag, id, description, model string, media []string) operation {
	return operation{method: "get", fields: fields{
		"tags": []string{tag}, "description": description, "operationId": id,
	}}.returns(model, media, "200")
}

// version makes the document of one version of a group, whose paths begin with
// root.
func (s *shared) version(root string, g *resource.Group, name string) []byte {
	paths := fields{}
	isNative := native(g, name)
	if isNative {
		add(paths, root+"/", reading(tagOf(g.Name, name), "get"+operationPart(g.Name, name)+"APIResources",
			"get available resources", metaPrefix+"APIResourceList", s.native.answers))
	}
	var models []resource.Model
	for _, d := range g.Definitions {
		v := d.Version(name)
		if v == nil || !v.Served || v.Schema == nil {
			continue
		}
		m := v.Schema.Model()
		models = append(models, m)
		o := operations{style: s.custom, params: s.params, definition: d, version: name, item: m.Name, list: m.List}
		if v.New != nil {
			o.style = s.native
		}
		o.addTo(paths, root, v)
	}
	var in []schema.GroupVersion
	if isNative {
		in = append(in, schema.GroupVersion{Version: "v1"})
		if g.Name != "" {
			in = append(in, schema.GroupVersion{Group: g.Name, Version: name})
		}
	} else {
		in = everyGroupVersion()
	}
	own := modelsOf(models, s.components)
	find := func(name string) (component, bool) {
		c, ok := own(name)
		if kind, common := strings.CutPrefix(name, metaPrefix); common && (name == deleteOptions || name == watchEvent) {
			c = c.everywhere(kind, in)
		}
		return c, ok
	}
	written := appendJSON(nil, paths)
	return s.write(isNative, raw(written), closure(refs(written), find))
}

// write puts a document together.
func (s *shared) write(isNative bool, paths any, schemas fields) []byte {
	info := fields{"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
	components := fields{"schemas": schemas}
	if isNative {
		info = fields{"title": "Kubernetes", "version": compatible}
		components["securitySchemes"] = fields{"BearerToken": fields{
			"type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header",
		}}
	}
	doc := []byte(`{"openapi":"3.0.0","info":`)
	doc = appendJSON(doc, info)
	doc = append(doc, `,"paths":`...)
	doc = appendJSON(doc, paths)
	doc = append(doc, `,"components":`...)
	doc = appendJSON(doc, components)
	return append(doc, '}')
}

// everyGroupVersion are the versions of Kubernetes' own groups. In the document
// of a custom resource DeleteOptions are said to be a kind of each of them.
func everyGroupVersion() []schema.GroupVersion {
	var out []schema.GroupVersion
	for line := range strings.Lines(groupVersions) {
		group, versions, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		for v := range strings.SplitSeq(versions, " ") {
			out = append(out, schema.GroupVersion{Group: group, Version: v})
		}
	}
	return out
}

const groupVersions = `: v1
admissionregistration.k8s.io: v1 v1alpha1 v1beta1
apps: v1 v1beta1 v1beta2
authentication.k8s.io: v1 v1alpha1 v1beta1
authorization.k8s.io: v1 v1beta1
autoscaling: v1 v2
batch: v1 v1beta1
certificates.k8s.io: v1 v1alpha1 v1beta1
coordination.k8s.io: v1 v1alpha2 v1beta1
discovery.k8s.io: v1 v1beta1
events.k8s.io: v1 v1beta1
extensions: v1beta1
flowcontrol.apiserver.k8s.io: v1 v1beta1 v1beta2 v1beta3
internal.apiserver.k8s.io: v1alpha1
lifecycle.k8s.io: v1alpha1
networking.k8s.io: v1 v1beta1
node.k8s.io: v1 v1alpha1 v1beta1
policy: v1 v1beta1
rbac.authorization.k8s.io: v1 v1alpha1 v1beta1
resource.k8s.io: v1 v1alpha3 v1beta1 v1beta2
scheduling.k8s.io: v1 v1alpha3 v1beta1
storage.k8s.io: v1 v1alpha1 v1beta1
storagemigration.k8s.io: v1 v1beta1
`
