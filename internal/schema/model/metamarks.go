package model

import "github.com/anykind/anykind/internal/schema/gotype"

// metaMarks are the markers in the source of the metadata types, and of the types of every API.
var metaMarks = gotype.Marks{
	"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
		"finalizers":      {List: "set"},
		"managedFields":   {List: "atomic"},
		"ownerReferences": {List: "map", Keys: []string{"uid"}},
	},
	"io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference": {"": {Map: "atomic"}},
	"io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector": {
		"":                 {Map: "atomic"},
		"matchExpressions": {List: "atomic"},
	},
	"io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement": {"values": {List: "atomic"}},
	"io.k8s.apimachinery.pkg.apis.meta.v1.FieldSelectorRequirement": {"values": {List: "atomic"}},
	"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions":            {"dryRun": {List: "atomic"}},
	"io.k8s.apimachinery.pkg.apis.meta.v1.StatusDetails":            {"causes": {List: "atomic"}},
	"io.k8s.apimachinery.pkg.apis.meta.v1.APIResource": {
		"categories": {List: "atomic"},
		"shortNames": {List: "atomic"},
	},
	"io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList": {"resources": {List: "atomic"}},
	"io.k8s.apimachinery.pkg.apis.meta.v1.Time": {
		"": {Doc: "Time is a moment, to the second, as RFC 3339 writes it."},
	},
	"io.k8s.apimachinery.pkg.apis.meta.v1.GroupResource": {
		"": {Doc: "GroupResource names a resource in whatever version."},
	},
	"io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": {
		"": {Doc: "MicroTime is a moment, to the microsecond, as RFC 3339 writes it."},
	},
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
		"": {Doc: "IntOrString is an integer or a string."},
	},
	"io.k8s.apimachinery.pkg.runtime.RawExtension": {
		"": {Doc: "RawExtension is an object of any kind."},
	},
}
