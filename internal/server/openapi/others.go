package openapi

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/aggregate"
	"github.com/anykind/anykind/internal/server/aggregate/published"
)

// Aggregated are the API servers behind this one, with their own documents.
type Aggregated interface {
	// Documents returns their OpenAPI v3 documents, by name.
	Documents(ctx context.Context) map[string]published.Document
	// DocumentsV2 returns their OpenAPI v2 documents.
	DocumentsV2(ctx context.Context) []published.DocumentV2
	// Forward returns the handler that forwards requests to the server of a version.
	Forward(*aggregate.Service) http.Handler
}

// noServers is Aggregated without any server.
type noServers struct{}

func (noServers) Documents(context.Context) map[string]published.Document { return nil }
func (noServers) DocumentsV2(context.Context) []published.DocumentV2      { return nil }
func (noServers) Forward(*aggregate.Service) http.Handler                 { return http.NotFoundHandler() }

// foreign is the part of other servers in OpenAPI v2. It may be nil.
type foreign struct {
	// definitions are those of other servers. Some equal definitions of this server: own has
	// their names, and they list the kinds of both.
	definitions spec.Definitions
	own         map[string]bool
	paths       map[string]spec.PathItem
	parameters  map[string]spec.Parameter
}

// gather merges the documents of other servers. A definition that differs from this server's
// definition of the same name is renamed.
func (s *shared) gather(wholes []published.DocumentV2, set *resource.Set) *foreign {
	parts, named := partsOf(wholes, set)
	if len(parts) == 0 {
		return nil
	}
	merged := &spec.Swagger{SwaggerProps: spec.SwaggerProps{Definitions: spec.Definitions{}}}
	f := &foreign{own: map[string]bool{}}
	for name, make := range s.definitions(set, map[*resource.Version]modelName{}) {
		var d spec.Schema
		if named[name] && d.UnmarshalJSON(appendJSON(nil, make())) == nil {
			merged.Definitions[name] = d
			f.own[name] = true
		}
	}
	for _, part := range parts {
		inOneVoice(part.Definitions, merged.Definitions)
		// After an error the part is left out: its paths are already described.
		_ = aggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(merged, part)
	}
	f.definitions, f.parameters = merged.Definitions, merged.Parameters
	if merged.Paths != nil {
		f.paths = merged.Paths.Paths
	}
	return f
}

// inOneVoice replaces definitions that differ from this server's in descriptions only. They are
// the same type, and keep one name.
func inOneVoice(theirs, ours spec.Definitions) {
	for name, d := range theirs {
		own, ok := ours[name]
		if ok && reflect.DeepEqual(withoutWords(own.SchemaProps), withoutWords(d.SchemaProps)) {
			d.SchemaProps = own.SchemaProps
			theirs[name] = d
		}
	}
}

// withoutWords returns a schema without its description and those of its fields.
func withoutWords(s spec.SchemaProps) spec.SchemaProps {
	s.Description = ""
	s.Properties = maps.Clone(s.Properties)
	for name, field := range s.Properties {
		field.Description = ""
		s.Properties[name] = field
	}
	return s
}

// partsOf returns the parts of other servers' documents about their own versions, and the names
// of the definitions there.
func partsOf(wholes []published.DocumentV2, set *resource.Set) (parts []*spec.Swagger, named map[string]bool) {
	named = map[string]bool{}
	for _, whole := range wholes {
		var doc spec.Swagger
		if doc.UnmarshalJSON(whole.JSON) != nil {
			continue // not a document
		}
		for _, s := range whole.Services {
			if set.Group(s.Group).Serves(s.Version) {
				continue
			}
			part := aggregator.FilterSpecByPathsWithoutSideEffects(&doc, []string{s.Path() + "/"})
			parts = append(parts, part)
			for name := range part.Definitions {
				named[name] = true
			}
		}
	}
	return parts, named
}

// converted returns the handler of a document that is converted from the OpenAPI v2 of a server
// without v3. It is converted for every request: clients cache it by its hash.
func (h *Handler) converted(name string, d published.Document) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var doc spec.Swagger
		for _, whole := range h.options.Aggregated.DocumentsV2(r.Context()) {
			if slices.Contains(whole.Services, d.Service) && doc.UnmarshalJSON(whole.JSON) == nil {
				part := aggregator.FilterSpecByPathsWithoutSideEffects(&doc, []string{d.Service.Path() + "/"})
				if body, err := openapiconv.ConvertV2ToV3(part).MarshalJSON(); err == nil {
					serve(w, r, name, &openDocument{hash: d.Hash}, func() []byte { return body })
					return
				}
			}
		}
		w.WriteHeader(http.StatusNotFound)
	})
}

// shared returns a definition of this server that other servers have too.
func (f *foreign) shared(name string) (fields, bool) {
	if f == nil || !f.own[name] {
		return nil, false
	}
	d := f.definitions[name]
	out := decoded(&d)
	return out, out != nil
}

// decoded returns a part of a foreign document as fields.
func decoded(part json.Marshaler) fields {
	data, err := part.MarshalJSON()
	if err != nil {
		return nil
	}
	var f fields
	if utiljson.Unmarshal(data, (*map[string]any)(&f)) != nil {
		return nil
	}
	return f
}

// writeDefinitions writes the definitions that only other servers have.
func (f *foreign) writeDefinitions(out *v2Writer) {
	if f == nil {
		return
	}
	for _, name := range sortedNames(f.definitions) {
		if !f.own[name] {
			d := f.definitions[name]
			out.foreign("definitions", name, decoded(&d))
		}
	}
}

func (f *foreign) writePaths(out *v2Writer) {
	if f == nil {
		return
	}
	for _, path := range sortedNames(f.paths) {
		item := f.paths[path]
		out.foreign("paths", path, decoded(&item))
	}
}

// addParameters adds the parameters of other servers. Names end in a hash of the content, so
// parameters of one name are equal.
func (f *foreign) addParameters(parameters fields) {
	if f == nil {
		return
	}
	for name, p := range f.parameters {
		if _, known := parameters[name]; !known {
			if one := decoded(&p); one != nil {
				parameters[name] = one
			}
		}
	}
}

// foreign writes an entry of another server's document. An entry that protobuf cannot represent
// is left out.
func (p *v2Writer) foreign(section, name string, v fields) {
	if v == nil {
		return
	}
	if p.protobuf && !encodable(section, name, v) {
		return
	}
	p.entry(section, name, v)
}

// encodable reports whether protobuf can represent an entry of another server.
func encodable(section, name string, v fields) (ok bool) {
	defer func() { ok = recover() == nil }()
	protobufV2().one(nil, section, fields{name: v})
	return true
}

// relevant leaves out documents that this server serves itself.
func relevant(all map[string]published.Document, o *Options, set *resource.Set) map[string]published.Document {
	if len(all) == 0 {
		return nil
	}
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(name string, _ published.Document) bool {
		_, _, local := o.lookup(set, name)
		return local
	})
	return out
}

// withoutJSON returns the parts that identify documents.
func withoutJSON(wholes []published.DocumentV2) []published.DocumentV2 {
	out := slices.Clone(wholes)
	for i := range out {
		out[i].JSON = nil
	}
	return out
}

// withSums adds the hashes of other servers' documents to an ETag.
func withSums(hash io.Writer, wholes []published.DocumentV2) {
	for _, w := range wholes {
		for _, s := range w.Services {
			_, _ = hash.Write([]byte(s.Name + "\n"))
		}
		_, _ = hash.Write(w.Sum[:])
	}
}

func sameWholes(a, b []published.DocumentV2) bool {
	return slices.EqualFunc(a, b, func(a, b published.DocumentV2) bool { return a.Sum == b.Sum && slices.Equal(a.Services, b.Services) })
}
