package dra

import (
	"maps"
	"regexp"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// In v1beta1, a request has the fields of exactly itself, and the fields of a device are below
// basic.

// places map fields of v1 to those of v1beta1.
var places = []struct {
	of func() *regexp.Regexp
	is string
}{
	{rule.Pattern(`(spec\.devices\.requests\[\d+\])\.exactly\.`), "$1."},
	{rule.Pattern(`^(spec\.devices\[\d+\])\.`), "$1.basic."},
}

// reshape converts an error about a field of v1 to v1beta1.
func reshape(err *field.Error) {
	for _, p := range places {
		err.Field = p.of().ReplaceAllString(err.Field, p.is)
	}
	if request, ok := err.BadValue.(resourcev1.DeviceRequest); ok {
		tree, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&request) // a Go type always converts
		spread(tree)
		err.BadValue = *kind.ValueOf[resourcev1beta1.DeviceRequest](tree)
	}
}

// exact are the fields that v1 has in exactly.
var exact = []string{
	"deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity", "derivedAttributes",
}

// eachRequest applies change to the requests of a claim or of a claim template.
func eachRequest(change func(request map[string]any)) func(obj map[string]any) {
	return func(obj map[string]any) {
		for _, path := range [][]string{{"spec", "devices", "requests"}, {"spec", "spec", "devices", "requests"}} {
			for _, r := range kind.List(obj, path...) {
				if request, ok := r.(map[string]any); ok {
					change(request)
				}
			}
		}
	}
}

// gather moves the fields of a request into exactly.
func gather(request map[string]any) {
	exactly, says := map[string]any{}, false
	for _, name := range exact {
		if value, ok := request[name]; ok {
			exactly[name], says = value, says || value != ""
			delete(request, name)
		}
	}
	if list, ok := exactly["tolerations"].([]any); ok && len(list) == 0 {
		delete(exactly, "tolerations") // Kubernetes converts an empty list to none
	}
	if says {
		request["exactly"] = exactly
	}
}

// spread moves them back. The class name is always present.
func spread(request map[string]any) {
	exactly := kind.Tree(request, "exactly")
	delete(request, "exactly")
	request["deviceClassName"] = ""
	maps.Copy(request, exactly)
}

// eachDevice applies change to the devices of a slice.
func eachDevice(change func(device map[string]any) map[string]any) func(obj map[string]any) {
	return func(obj map[string]any) {
		devices := kind.List(obj, "spec", "devices")
		for i, d := range devices {
			if device, ok := d.(map[string]any); ok {
				devices[i] = change(device)
			}
		}
	}
}

func unpack(device map[string]any) map[string]any {
	out := map[string]any{"name": device["name"]}
	maps.Copy(out, kind.Tree(device, "basic"))
	return out
}

func pack(device map[string]any) map[string]any {
	basic := maps.Clone(device)
	delete(basic, "name")
	return map[string]any{"name": device["name"], "basic": basic}
}
