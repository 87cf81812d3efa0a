package crd

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
)

// setDefaults sets the defaults of a CustomResourceDefinition. It replaces parts of t instead of
// changing them, because t may share them with another object.
func setDefaults(t object.Tree) {
	spec, ok := t["spec"].(object.Tree)
	if !ok {
		return
	}
	spec = maps.Clone(spec)
	t["spec"] = spec
	if n, ok := spec["names"].(object.Tree); ok {
		n = maps.Clone(n)
		spec["names"] = n
		kind, _ := n["kind"].(string)
		if missing(n, "singular") && kind != "" {
			n["singular"] = strings.ToLower(kind)
		}
		if missing(n, "listKind") && kind != "" {
			n["listKind"] = kind + "List"
		}
	}
	if spec["conversion"] == nil {
		spec["conversion"] = object.Tree{"strategy": string(v1.NoneConverter)}
	}
	dropEmptyWebhook(spec)
	defaultPort(spec)
	if len(list(t, "status", "storedVersions")) == 0 {
		addStoredVersion(t)
	}
}

func missing(t object.Tree, field string) bool { s, _ := t[field].(string); return s == "" }

// dropEmptyWebhook drops an empty webhook.
func dropEmptyWebhook(spec object.Tree) {
	conversion, _ := spec["conversion"].(object.Tree)
	webhook, ok := conversion["webhook"].(object.Tree)
	if ok && webhook["clientConfig"] == nil && webhook["conversionReviewVersions"] == nil {
		conversion = maps.Clone(conversion)
		delete(conversion, "webhook")
		spec["conversion"] = conversion
	}
}

// defaultPort sets the default port of a conversion webhook's service.
func defaultPort(spec object.Tree) {
	at := spec
	for _, field := range []string{"conversion", "webhook", "clientConfig", "service"} {
		next, ok := at[field].(object.Tree)
		if !ok {
			return
		}
		next = maps.Clone(next)
		at[field] = next
		at = next
	}
	if at["port"] == nil {
		at["port"] = int64(443)
	}
}

// addStoredVersion adds the storage version to storedVersions.
func addStoredVersion(t object.Tree) {
	stored := list(t, "status", "storedVersions")
	for _, v := range list(t, "spec", "versions") {
		v, _ := v.(object.Tree)
		if v["storage"] != true {
			continue
		}
		if !slices.Contains(stored, v["name"]) {
			status, _ := t["status"].(object.Tree)
			if status = maps.Clone(status); status == nil {
				status = object.Tree{}
			}
			status["storedVersions"] = append(slices.Clip(stored), v["name"])
			t["status"] = status
		}
		return
	}
}
