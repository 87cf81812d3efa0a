package openapi

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/anykind/anykind/internal/object/view"
	"github.com/anykind/anykind/internal/schema/gotype"
	"github.com/anykind/anykind/internal/schema/model"
)

const refPrefix = "#/components/schemas/"

// Names of schemas that operations refer to, besides those of the resource.
const (
	metaPrefix    = "io.k8s.apimachinery.pkg.apis.meta.v1."
	deleteOptions = metaPrefix + "DeleteOptions"
	statusModel   = metaPrefix + "Status"
	patchModel    = metaPrefix + "Patch"
	watchEvent    = metaPrefix + "WatchEvent"
	scaleModel    = "io.k8s.api.autoscaling.v1.Scale"
	versionModel  = "io.k8s.apimachinery.pkg.version.Info"
)

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// A component is one schema of a document.
type component struct {
	schema *spec.Schema
	json   raw
	refs   []string // names of referenced schemas
}

func newComponent(s *spec.Schema) component {
	data := encode(s)
	return component{s, data, refs(data)}
}

// refs returns the names of the schemas that JSON refers to. Quotation marks inside strings are
// escaped, so every match is a reference.
func refs(data []byte) []string {
	mark := []byte(`"$ref":"` + refPrefix)
	var out []string
	for {
		i := bytes.Index(data, mark)
		if i < 0 {
			return out
		}
		data = data[i+len(mark):]
		end := bytes.IndexByte(data, '"')
		if name := string(data[:end]); !slices.Contains(out, name) {
			out = append(out, name)
		}
		data = data[end:]
	}
}

// shared has the parts that all documents share. They are built on first use.
type shared struct {
	release    string // of Kubernetes
	cbor       bool
	noEnums    bool
	once       sync.Once
	params     *parameters
	components map[string]component
	custom     *style
	native     *style
}

func (s *shared) prepare() {
	s.once.Do(func() {
		s.params = newParameters()
		s.custom, s.native = newStyles(s.params, s.cbor)
		s.components = map[string]component{}
		for _, m := range []view.Model{
			modelOf[metav1.APIVersions](core("APIVersions")),
			modelOf[metav1.APIGroup](core("APIGroup")),
			modelOf[metav1.APIGroupList](core("APIGroupList")),
			modelOf[metav1.APIResourceList](core("APIResourceList")),
			modelOf[metav1.Status](core("Status")),
			modelOf[metav1.DeleteOptions](model.Kind{}),
			modelOf[metav1.WatchEvent](model.Kind{}),
			modelOf[metav1.Patch](model.Kind{}),
			modelOf[autoscalingv1.Scale](model.Kind{Group: scaleKind.Group, Version: scaleKind.Version, Kind: scaleKind.Kind}),
			modelOf[apimachineryversion.Info](model.Kind{}),
		} {
			for name, published := range m.Schemas {
				// As a dependency of another type, a type has no kind.
				if _, ok := s.components[name]; !ok || name == m.Name {
					s.components[name] = newComponent(published)
				}
			}
		}
	})
}

func modelOf[T any](kind model.Kind) view.Model {
	return model.OfType(reflect.TypeFor[T](), model.TypeOptions{Kind: kind, Marks: marks})
}

func core(kind string) model.Kind { return model.Kind{Version: "v1", Kind: kind} }

// marks returns the marks of types that only discovery publishes.
func marks() gotype.Marks {
	atomic := gotype.Mark{List: "atomic"}
	return gotype.Marks{
		metaPrefix + "APIVersions":  {"versions": atomic, "serverAddressByClientCIDRs": atomic},
		metaPrefix + "APIGroup":     {"versions": atomic, "serverAddressByClientCIDRs": atomic},
		metaPrefix + "APIGroupList": {"groups": atomic},
		scaleModel + "Spec":         {"replicas": {Default: 0}},
		watchEvent: {
			"":       {Doc: "WatchEvent says that something happened to an object."},
			"object": {Doc: "What it happened to: as it is now, or as it was last if it was deleted, or a Status if the type is ERROR."},
		},
		versionModel: {
			"":                      {Doc: "Info is what the server says of its version."},
			"major":                 {Doc: "The first number of the version of Kubernetes."},
			"minor":                 {Doc: "The second number of the version of Kubernetes."},
			"emulationMajor":        {Doc: "The first number of the version that the server behaves like."},
			"emulationMinor":        {Doc: "The second number of the version that the server behaves like."},
			"minCompatibilityMajor": {Doc: "The first number of the oldest version that the server works beside."},
			"minCompatibilityMinor": {Doc: "The second number of the oldest version that the server works beside."},
		},
	}
}

// everywhere returns a schema of a type that is a kind in every group version.
func (c component) everywhere(kind string, in []schema.GroupVersion) component {
	data := bytes.TrimSuffix(slices.Clip(c.json), []byte("}"))
	data = append(slices.Clip(data), `,"x-kubernetes-group-version-kind":`...)
	data = appendJSON(data, kinds(kind, in))
	return component{c.schema, append(data, '}'), c.refs}
}

// kinds lists a kind in every group version.
func kinds(kind string, in []schema.GroupVersion) []fields {
	out := make([]fields, len(in))
	for i, gv := range in {
		out[i] = fields{"group": gv.Group, "version": gv.Version, "kind": kind}
	}
	return out
}

// closure returns the named schemas and all that they refer to, as the fields of
// components.schemas. find returns a schema by name.
func closure(names []string, find func(string) (component, bool)) fields {
	out, todo := fields{}, slices.Clone(names)
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, done := out[name]; done {
			continue
		}
		c, ok := find(name)
		if !ok {
			continue
		}
		out[name] = c.json
		todo = append(todo, c.refs...)
	}
	return out
}

// modelsOf returns a lookup of the schemas of a version's resources. It encodes a schema on its
// first lookup.
func modelsOf(models []view.Model, common map[string]component) func(string) (component, bool) {
	own := map[string]*spec.Schema{}
	for _, m := range models {
		maps.Copy(own, m.Schemas)
	}
	return func(name string) (component, bool) {
		if c, ok := common[name]; ok {
			return c, true
		}
		s, ok := own[name]
		if !ok {
			return component{}, false
		}
		return newComponent(s), true
	}
}
