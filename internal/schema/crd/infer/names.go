package infer

import (
	"cmp"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// New returns a definition of a kind without versions. Missing names are derived from the kind.
func New(kind schema.GroupKind, names v1.CustomResourceDefinitionNames) *v1.CustomResourceDefinition {
	names.Kind = kind.Kind
	names.Singular = cmp.Or(names.Singular, strings.ToLower(kind.Kind))
	names.Plural = cmp.Or(names.Plural, plural(names.Singular))
	d := &v1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: names.Plural + "." + kind.Group},
		Spec:       v1.CustomResourceDefinitionSpec{Group: kind.Group, Scope: v1.NamespaceScoped, Names: names},
	}
	if protected(kind.Group) {
		// Without it a server refuses a definition in a group of Kubernetes.
		d.Annotations = map[string]string{v1.KubeAPIApprovedAnnotation: "unapproved, made by anykind crd infer"}
	}
	return d
}

// OfSchema is the definition of a kind in one version, with a schema that is known.
func OfSchema(kind schema.GroupKind, version string, s *v1.JSONSchemaProps, o Options) Result {
	d := New(kind, o.Names)
	d.Spec.Scope = cmp.Or(o.Scope, v1.NamespaceScoped)
	v := v1.CustomResourceDefinitionVersion{Name: version, Served: true, Storage: true, Schema: &v1.CustomResourceValidation{OpenAPIV3Schema: s}}
	Complete(&v)
	d.Spec.Versions = []v1.CustomResourceDefinitionVersion{v}
	return Result{Definition: d}
}

// protected reports whether a group belongs to Kubernetes.
func protected(group string) bool {
	for _, domain := range []string{"k8s.io", "kubernetes.io"} {
		if group == domain || strings.HasSuffix(group, "."+domain) {
			return true
		}
	}
	return false
}

// plural is the usual plural of an English word in small letters.
func plural(word string) string {
	ends := func(endings ...string) bool {
		for _, e := range endings {
			if strings.HasSuffix(word, e) {
				return true
			}
		}
		return false
	}
	switch {
	case ends("sis"): // analysis
		return strings.TrimSuffix(word, "is") + "es"
	case ends("ss", "us", "is", "as", "x", "z", "ch", "sh"): // class, status, redis, alias
		return word + "es"
	case ends("s", "data"): // endpoints, metadata
		return word
	case ends("y") && !ends("ay", "ey", "iy", "oy", "uy"):
		return strings.TrimSuffix(word, "y") + "ies"
	}
	return word + "s"
}

// ofCluster reports whether kinds of such a name usually have no namespace.
func ofCluster(kind string) bool {
	return strings.HasPrefix(kind, "Cluster") && kind != "Cluster" && kind[len("Cluster")] >= 'A' && kind[len("Cluster")] <= 'Z' || strings.HasSuffix(kind, "Class")
}
