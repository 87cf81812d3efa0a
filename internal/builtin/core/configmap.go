package core

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func configMaps() *resource.Definition {
	return kind.Kind[*corev1.ConfigMap, *corev1.ConfigMapList]{
		Definition: resource.Definition{
			Plural: "configmaps", ShortNames: []string{"cm"}, Namespaced: true,
			Strategy: resource.Strategy{
				AllowUnconditionalUpdate: true,
				Prepare:                  resource.Changing(func(obj, _ map[string]any) { kind.EmptyNulls(obj, "binaryData") }),
			},
		},
		Validate: validateConfigMap,
		Columns: `
			Data  string  data  .data
			Age
		`,
		Cells: kind.Cells{"data": func(obj map[string]any) any {
			return int64(len(kind.Tree(obj, "data")) + len(kind.Tree(obj, "binaryData")))
		}},
	}.New()
}

func validateConfigMap(c *rule.Check, m, old *corev1.ConfigMap) {
	if old != nil && isFrozen(c, m.Immutable, old.Immutable) {
		if len(m.Data)+len(old.Data) > 0 { // the default is an empty map
			frozen(c.At("data"), m.Data, old.Data)
		}
		frozen(c.At("binaryData"), m.BinaryData, old.BinaryData)
	}
	size := 0
	for _, key := range kind.SortedKeys(m.Data) {
		at := c.At("data").AtKey(key)
		at.Invalids(key, validation.IsConfigMapKey(key))
		if _, ok := m.BinaryData[key]; ok {
			at.Invalid(key, "duplicate of key present in binaryData")
		}
		size += len(m.Data[key])
	}
	for _, key := range kind.SortedKeys(m.BinaryData) {
		c.At("binaryData").AtKey(key).Invalids(key, validation.IsConfigMapKey(key))
		size += len(m.BinaryData[key])
	}
	if size > corev1.MaxSecretSize {
		c.Add(field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
}

const frozenDetail = "field is immutable when `immutable` is set"

// isFrozen reports whether an object is immutable, and rejects an update that ends that.
func isFrozen(c *rule.Check, now, before *bool) bool {
	if before == nil || !*before {
		return false
	}
	if now == nil || !*now {
		c.At("immutable").Forbidden(frozenDetail)
	}
	return true
}

func frozen(c *rule.Check, now, before any) {
	if !reflect.DeepEqual(now, before) { // nil differs from an empty map
		c.Forbidden(frozenDetail)
	}
}
