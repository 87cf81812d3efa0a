package check

import (
	"io"

	"github.com/anykind/anykind/internal/object"
)

// The part of the interface of KRM functions that is used here. kustomize and kpt call such functions:
// https://github.com/kubernetes-sigs/kustomize/blob/master/cmd/config/docs/api-conventions/functions-spec.md
type (
	resourceList struct {
		APIVersion string        `json:"apiVersion"`
		Kind       string        `json:"kind"`
		Items      []object.Tree `json:"items"`
		Results    []krmResult   `json:"results,omitempty"`
	}
	krmResult struct {
		Message  string       `json:"message"`
		Severity string       `json:"severity"`
		Resource *krmResource `json:"resourceRef,omitempty"`
		Field    *krmField    `json:"field,omitempty"`
		File     *krmFile     `json:"file,omitempty"`
	}
	krmResource struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Namespace  string `json:"namespace,omitempty"`
		Name       string `json:"name"`
	}
	krmField struct {
		Path string `json:"path"`
	}
	krmFile struct {
		Path string `json:"path"`
	}
)

// Of a ResourceList.
const (
	krmVersion = "config.kubernetes.io/v1"
	krmKind    = "ResourceList"
)

// pathAnnotations name the file of an item of a ResourceList.
var pathAnnotations = [...]string{"config.kubernetes.io/path", "internal.config.kubernetes.io/path"}

// itemSource makes the file in an annotation the place of an item of a ResourceList.
func itemSource(d *Document) {
	for _, name := range pathAnnotations {
		if path, ok := object.Annotation(d.tree, name); ok {
			d.file, d.source = path, &unknownSource{}
			return
		}
	}
}

// WriteKRM writes a ResourceList with the unchanged objects, and the findings as its results.
func (r *Report) WriteKRM(w io.Writer) error {
	list := resourceList{APIVersion: krmVersion, Kind: krmKind, Items: []object.Tree{}}
	for i := range r.Results {
		one := &r.Results[i]
		if one.document.broken == nil {
			list.Items = append(list.Items, one.document.tree)
		}
		add := func(severity string, p Problem) {
			result := krmResult{Message: p.line(), Severity: severity, File: &krmFile{one.File}}
			if one.Kind != "" {
				result.Resource = &krmResource{one.APIVersion, one.Kind, one.Namespace, one.Name}
			}
			if p.Field != "" {
				result.Field = &krmField{p.Field}
			}
			list.Results = append(list.Results, result)
		}
		for _, p := range one.Problems {
			add("error", p)
		}
		for _, p := range one.Warnings {
			add("warning", p)
		}
	}
	return encodeJSON(w, list)
}
