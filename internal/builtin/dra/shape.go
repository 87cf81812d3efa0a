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

// In v1beta1, the fields of a request that asks for devices in one way are its own: there is
// no field exactly. All that is said of a device is in its field basic.

// places are where v1beta1 has fields that v1 has elsewhere.
var places = []struct {
	of func() *regexp.Regexp
	is string
}{
	{rule.Pattern(`(spec\.devices\.requests\[\d+\])\.exactly\.`), "$1."},
	{rule.Pattern(`^(spec\.devices\[\d+\])\.`), "$1.basic."},
}

// reshape says of an object of v1beta1 what is wrong in v1.
func reshape(err *field.Error) {
	for _, p := range places {
		err.Field = p.of().ReplaceAllString(err.Field, p.is)
	}
	if request, ok := err.BadValue.(resourcev1.DeviceRequest); ok {
		tree, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&request) // which a Go type can always
		spread(tree)
		err.BadValue = *kind.ValueOf[resourcev1beta1.DeviceRequest](tree)
	}
}

// exact are the fields that v1 has in exactly.
var exact = []string{
	"deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity", "derivedAttributes",
}

// eachRequest changes the requests of a claim, or of a template of claims.
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
	if says {
		request["exactly"] = exactly
	}
}

// spread is the other way round. The name of a class is always there.
func spread(request map[string]any) {
	exactly := kind.Tree(request, "exactly")
	delete(request, "exactly")
	request["deviceClassName"] = ""
	maps.Copy(request, exactly)
}

// eachDevice changes the devices of a slice.
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
