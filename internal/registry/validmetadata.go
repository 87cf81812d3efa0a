package registry

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"github.com/anykind/anykind/internal/object"
)

// A fast check recognizes valid metadata, nearly all there is. The rest is validated by Kubernetes'
// own code, which alone produces errors.

// plainMetadata reports whether the metadata of t is certainly valid. The kind has no rules of its own
// for names. old is nil for a new object.
func plainMetadata(namespaced bool, t, old object.Tree) bool {
	m, ok := t["metadata"].(object.Tree)
	if !ok || !plainNames(m, namespaced) || old != nil && !plainUpdate(m, old) {
		return false
	}
	for key, v := range m {
		switch key {
		case "name", "namespace":
			// plainNames has checked them.
		case "uid", "resourceVersion", "creationTimestamp":
			if _, ok := v.(string); !ok {
				return false
			}
		case "generation":
			if n, ok := v.(int64); !ok || n < 0 {
				return false
			}
		case "labels":
			if !plainStrings(v, func(key, value string) bool { return plainKey(key) && (value == "" || plainWord(value)) }) {
				return false
			}
		case "annotations":
			size := 0
			if !plainStrings(v, func(key, value string) bool {
				size += len(key) + len(value)
				return plainKey(key) && size <= apivalidation.TotalAnnotationSizeLimitB
			}) {
				return false
			}
		case "finalizers":
			if !plainFinalizers(v) {
				return false
			}
		case "managedFields":
			if !plainManagers(v) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func plainNames(m object.Tree, namespaced bool) bool {
	name, _ := m["name"].(string)
	if !plainName(name) {
		return false
	}
	namespace, is := m["namespace"]
	if !namespaced {
		return !is
	}
	s, _ := namespace.(string)
	return plainName(s)
}

// plainUpdate reports whether an update keeps immutable metadata.
func plainUpdate(m, old object.Tree) bool {
	was, ok := old["metadata"].(object.Tree)
	if !ok || was["deletionTimestamp"] != nil {
		return false
	}
	for _, key := range [...]string{"name", "namespace", "uid", "creationTimestamp"} {
		if !object.Equal(m[key], was[key]) {
			return false
		}
	}
	now, _ := m["generation"].(int64)
	before, _ := was["generation"].(int64)
	revision, _ := m["resourceVersion"].(string)
	return now >= before && revision != ""
}

func plainStrings(v any, plain func(key, value string) bool) bool {
	t, ok := v.(object.Tree)
	if !ok {
		return false
	}
	for key, v := range t {
		if value, ok := v.(string); !ok || !plain(key, value) {
			return false
		}
	}
	return true
}

func plainFinalizers(v any) bool {
	list, ok := v.([]any)
	if !ok {
		return false
	}
	for _, v := range list {
		s, ok := v.(string)
		if !ok || !plainKey(s) || s == metav1.FinalizerOrphanDependents || s == metav1.FinalizerDeleteDependents {
			return false
		}
	}
	return true
}

func plainManagers(v any) bool {
	list, ok := v.([]any)
	if !ok {
		return false
	}
	for _, v := range list {
		e, ok := v.(object.Tree)
		if !ok || e["fieldsType"] != "FieldsV1" {
			return false
		}
		switch e["operation"] {
		case string(metav1.ManagedFieldsOperationApply), string(metav1.ManagedFieldsOperationUpdate):
		default:
			return false
		}
		manager, _ := e["manager"].(string)
		if len(manager) > validation.FieldManagerMaxLength || strings.ContainsFunc(manager, func(r rune) bool { return r < ' ' || r > '~' }) {
			return false
		}
		if subresource, _ := e["subresource"].(string); len(subresource) > validation.MaxSubresourceNameLength {
			return false
		}
	}
	return true
}

const maxLabel = 63 // of DNS, and of the name in a key

// plainName reports whether s is a DNS label.
func plainName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !lower(c) && (c != '-' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return s != "" && len(s) <= maxLabel
}

// plainKey reports whether s is a label key, in lower case where some rule requires it.
func plainKey(s string) bool {
	prefix, name, ok := strings.Cut(s, "/")
	if !ok {
		return plainWord(s)
	}
	if len(prefix) > 253 || !plainWord(name) {
		return false
	}
	for label := range strings.SplitSeq(prefix, ".") {
		if !plainName(label) {
			return false
		}
	}
	return true
}

// plainWord reports whether s is the name part of a key, or a label value.
func plainWord(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case lower(c), c >= 'A' && c <= 'Z':
		case (c == '-' || c == '_' || c == '.') && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return s != "" && len(s) <= maxLabel
}

func lower(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
