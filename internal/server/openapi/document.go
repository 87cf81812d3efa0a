package openapi

import (
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/groupversion"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

// buildDocument builds the OpenAPI document of that name. g and v are its group and version, if
// any.
func buildDocument(s *shared, name string, g *resource.Group, v string) []byte {
	s.prepare()
	if v != "" {
		return s.version("/"+name, g, v)
	}
	var paths pathItems
	paths.add("/"+name+"/", s.about(name, g))
	find := func(name string) (component, bool) { c, ok := s.components[name]; return c, ok }
	return s.write(true, paths.v3(), closure([]string{paths[0].operations[0].answer.schema}, find))
}

// about returns the operation of a document about discovery.
func (s *shared) about(name string, g *resource.Group) operation {
	if o, ok := page(name); ok {
		return o
	}
	switch name {
	case "apis":
		return reading("apis", "getAPIVersions", "get available API versions", metaPrefix+"APIGroupList", s.native.answers)
	case "api":
		return reading("core", "getCoreAPIVersions", "get available API versions", metaPrefix+"APIVersions", s.native.answers)
	default:
		return reading(tagOf(g.Name, ""), "get"+operationPart(g.Name, "")+"APIGroup",
			"get information of a group", metaPrefix+"APIGroup", s.native.answers)
	}
}

func reading(tag, id, description, model string, media []string) operation {
	return operation{method: "get", body: content{media: media}, fields: fields{
		"tags": []string{tag}, "description": description, "operationId": id,
	}}.returns(model, media, "200")
}

// version builds the document of one version of a group, whose paths begin with root.
func (s *shared) version(root string, g *resource.Group, name string) []byte {
	var models []view.Model
	typed := g.DialectOf(name).TypedOpenAPI
	paths := s.pathsOf(root, g, name, func(v *resource.Version) (item, list string) {
		m := s.model(v, typed)
		models = append(models, m)
		return m.Name, m.List
	}, fields{})
	var in []schema.GroupVersion
	if typed {
		in = append(in, schema.GroupVersion{Version: "v1"})
		if g.Name != "" {
			in = append(in, schema.GroupVersion{Group: g.Name, Version: name})
		}
	} else {
		in = groupversion.OfClients()
	}
	own := modelsOf(models, s.components)
	find := func(name string) (component, bool) {
		c, ok := own(name)
		if kind, common := strings.CutPrefix(name, metaPrefix); common && (name == deleteOptions || name == watchEvent) {
			c = c.everywhere(kind, in)
		}
		return c, ok
	}
	written := appendJSON(nil, paths.v3())
	return s.write(typed, raw(written), closure(refs(written), find))
}

// pathsOf returns the paths of one version of a group, which begin with root. names returns the
// names of the schemas of a resource and of its list. refers receives the parameters that OpenAPI
// v2 refers to.
func (s *shared) pathsOf(root string, g *resource.Group, version string, names func(*resource.Version) (item, list string), refers fields) pathItems {
	var paths pathItems
	if g.DialectOf(version).OpenAPIOfDiscovery {
		paths.add(root+"/", reading(tagOf(g.Name, version), "get"+operationPart(g.Name, version)+"APIResources",
			"get available resources", metaPrefix+"APIResourceList", s.native.answers))
	}
	for d, v := range described(g, version) {
		o := operations{style: s.custom, params: s.params, definition: d, version: version, names: names, shared: refers, returnsDeleted: d.ReturnsDeletedIn(v)}
		o.item, o.list = names(v)
		if d.Dialect.TypedOpenAPI {
			o.style = s.native
		}
		o.addTo(&paths, root, v)
	}
	return paths
}

// described yields the resources of a version of a group that OpenAPI describes.
func described(g *resource.Group, version string) iter.Seq2[*resource.Definition, *resource.Version] {
	return func(yield func(*resource.Definition, *resource.Version) bool) {
		for _, d := range g.Definitions {
			if v := d.Version(version); v != nil && v.Served && v.Schema != nil && !yield(d, v) {
				return
			}
		}
	}
}

// bodies yields the request and response types of subresources, except those that every document
// has.
func bodies(v *resource.Version) iter.Seq[*resource.Version] {
	return func(yield func(*resource.Version) bool) {
		for i := range v.Subresources {
			s := &v.Subresources[i]
			if s.Definition != nil && s.Kind != scaleKind && !yield(s.Definition.StorageVersion()) {
				return
			}
		}
	}
}

// write assembles a document.
func (s *shared) write(typed bool, paths any, schemas fields) []byte {
	info := fields{"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
	components := fields{}
	if len(schemas) > 0 {
		components["schemas"] = schemas
	}
	if typed {
		info = s.info()
		components["securitySchemes"] = bearerToken()
	}
	doc := []byte(`{"openapi":"3.0.0","info":`)
	doc = appendJSON(doc, info)
	doc = append(doc, `,"paths":`...)
	doc = appendJSON(doc, paths)
	doc = append(doc, `,"components":`...)
	doc = appendJSON(doc, components)
	return append(doc, '}')
}

func (s *shared) info() fields { return fields{"title": "Kubernetes", "version": s.release} }

// bearerToken returns the security scheme.
func bearerToken() fields {
	return fields{"BearerToken": fields{
		"type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header",
	}}
}
