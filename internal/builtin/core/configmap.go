package core

import (
	"encoding/base64"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

func configMaps() *resource.Definition {
	return kind.New(resource.Definition{
		Plural: "configmaps", Singular: "configmap", Kind: "ConfigMap", ShortNames: []string{"cm"},
		Namespaced: true, GroupPriority: kind.CorePriority,
		Strategy: resource.Strategy{
			AllowUnconditionalUpdate: true,
			Prepare:                  resource.Changing(func(obj, _ map[string]any) { kind.EmptyNulls(obj, "binaryData") }),
			Validate:                 resource.Looking(validateConfigMap),
		},
	}, kind.VersionOf[corev1.ConfigMap, corev1.ConfigMapList](&resource.Version{Name: "v1", Columns: []resource.Column{
		{
			Name: "Data", Type: "string", Description: corev1.ConfigMap{}.SwaggerDoc()["data"],
			Cell: func(obj map[string]any) any {
				return int64(len(kind.Tree(obj, "data")) + len(kind.Tree(obj, "binaryData")))
			},
		},
		kind.AgeColumn(),
	}}, marks()))
}

func validateConfigMap(obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	if old != nil {
		errs = kind.Frozen(obj, old, "data", "binaryData")
	}
	errs = append(errs, kind.MetaFinalizers(obj)...)
	data, binary := kind.Tree(obj, "data"), kind.Tree(obj, "binaryData")
	size := 0
	for _, key := range sortedKeys(data) {
		at := field.NewPath("data").Key(key)
		errs = append(errs, validateKey(key, at)...)
		if _, ok := binary[key]; ok {
			errs = append(errs, field.Invalid(at, key, "duplicate of key present in binaryData"))
		}
		s, _ := data[key].(string)
		size += len(s)
	}
	for _, key := range sortedKeys(binary) {
		errs = append(errs, validateKey(key, field.NewPath("binaryData").Key(key))...)
		size += decodedLen(binary[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return errs
}

func validateKey(key string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(at, key, msg))
	}
	return errs
}

// decodedLen is the number of bytes that a base64 string stands for.
func decodedLen(v any) int {
	s, _ := v.(string)
	n := base64.StdEncoding.DecodedLen(len(s))
	for i := len(s) - 1; i >= 0 && s[i] == '='; i-- {
		n--
	}
	return n
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
