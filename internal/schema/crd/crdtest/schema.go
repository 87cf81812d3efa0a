package crdtest

import (
	"fmt"
	"maps"
)

// A part of an object has the fields that are wanted in its own way.
type part int

const (
	forProvider  part = iota // desired
	initProvider             // initial
	atProvider               // observed
)

// A writer writes fields as a schema.
type writer struct {
	lists bool // a block is a list of one, as in versions that are not the last
}

// root is the schema of an object.
func root(kind, about string, wanted []field, w writer) object {
	forThem := w.properties(wanted, forProvider)
	forThem["region"] = described("string", "The region in which the object is.")
	observed := w.properties(wanted, atProvider)
	observed["region"] = forThem["region"]
	observed["id"] = object{"type": "string"}
	spec := object{
		"type": "object", "description": "What " + kind + " is to be.",
		"required": array{"forProvider"},
		"properties": object{
			"deletionPolicy": enum("What becomes of the external object when this one is deleted.", "Delete", "Orphan"),
			"forProvider":    object{"type": "object", "properties": forThem, "required": array{"region"}},
			"initProvider": object{
				"type": "object", "properties": w.properties(wanted, initProvider),
				"description": "Fields that count only while the external object is being created. They are merged into forProvider then, and left alone by every update that follows.",
			},
			"managementPolicies": object{
				"type": "array", "default": array{"*"},
				"description": "What may be done to the external object. Each is allowed on its own, and * stands for all of them.",
				"items":       object{"type": "string", "enum": array{"Observe", "Create", "Update", "Delete", "LateInitialize", "*"}},
			},
			"providerConfigRef": with(referenceTo("How the provider is configured that looks after the external object."), "default", object{"name": "default"}),
			"writeConnectionSecretToRef": object{
				"type": "object", "required": array{"name", "namespace"},
				"description": "The Secret into which the details of a connection are written, such as an address, a user and a password.",
				"properties":  object{"name": described("string", "Name of the Secret."), "namespace": described("string", "Namespace of the Secret.")},
			},
		},
	}
	if rules := rules(wanted); len(rules) > 0 {
		spec["x-kubernetes-validations"] = rules
	}
	return object{
		"type": "object", "description": about, "required": array{"spec"},
		"properties": object{
			"apiVersion": described("string", "The version of the schema in which this object is written."),
			"kind":       described("string", "The kind of this object."),
			"metadata":   object{"type": "object"},
			"spec":       spec,
			"status": object{"type": "object", "description": "What " + kind + " is.", "properties": object{
				"atProvider": object{"type": "object", "properties": observed},
				"conditions": conditions(), "observedGeneration": observedGeneration(),
			}},
		},
	}
}

// rules require a field in one of two places, at most three rules.
func rules(wanted []field) (out array) {
	for _, f := range wanted {
		if !f.required || f.form == secret || len(out) == 3 {
			continue
		}
		out = append(out, object{
			"rule": fmt.Sprintf("!('*' in self.managementPolicies || 'Create' in self.managementPolicies || 'Update' in self.managementPolicies) || "+
				"has(self.forProvider.%[1]s) || (has(self.initProvider) && has(self.initProvider.%[1]s))", f.name),
			"message": f.name + " is required in spec.forProvider or in spec.initProvider",
		})
	}
	return out
}

func (w writer) properties(fields []field, p part) object {
	out := object{}
	for _, f := range fields {
		switch {
		case f.form == secret && p != atProvider:
			out[f.name+"SecretRef"] = secretKey(f.about)
		case f.form == secret: // is not shown
		default:
			out[f.name] = w.property(f, p)
		}
		if f.form == reference && p != atProvider {
			out[f.name+"Ref"] = referenceTo("The object from which " + f.name + " is taken.")
			out[f.name+"Selector"] = selector("Chooses the object from which " + f.name + " is taken.")
		}
	}
	return out
}

func (w writer) property(f field, p part) object {
	switch f.form {
	case number:
		return described("number", f.about)
	case flag:
		return described("boolean", f.about)
	case textSet:
		return with(described("array", f.about), "items", object{"type": "string"}, "x-kubernetes-list-type", "set")
	case textMap:
		return with(described("object", f.about), "additionalProperties", object{"type": "string"}, "x-kubernetes-map-type", "granular")
	case block, blocks:
		inner := object{"type": "object", "properties": w.properties(f.inner, p)}
		if f.form == block && !w.lists {
			return with(inner, "description", f.about)
		}
		return with(described("array", f.about), "items", inner)
	}
	return described("string", f.about)
}

func described(typ, about string) object { return object{"type": typ, "description": about} }

// with returns o with further keys, given as alternating keys and values.
func with(o object, more ...any) object {
	o = maps.Clone(o)
	for i := 0; i < len(more); i += 2 {
		o[more[i].(string)] = more[i+1]
	}
	return o
}

// enum is a text that is one of several, the first of them by default.
func enum(about string, values ...any) object {
	return with(described("string", about), "enum", values, "default", values[0])
}

func referenceTo(about string) object {
	return with(described("object", about), "required", array{"name"}, "properties", object{
		"name": described("string", "Name of the object that is referred to."), "policy": referencePolicy(),
	})
}

func selector(about string) object {
	return with(described("object", about), "properties", object{
		"matchControllerRef": described("boolean", "Choose only among the objects that have the same controller as this one."),
		"matchLabels":        with(described("object", "Choose only among the objects that have these labels."), "additionalProperties", object{"type": "string"}),
		"policy":             referencePolicy(),
	})
}

func referencePolicy() object {
	return with(described("object", "How a reference is followed."), "properties", object{
		"resolution": enum("Whether it is an error if the object is not there. With Required nothing is done before it is.", "Required", "Optional"),
		"resolve": with(described("string", "When the reference is followed: each time, or only as long as the field has no value."),
			"enum", array{"Always", "IfNotPresent"}),
	})
}

func secretKey(about string) object {
	return with(described("object", about), "required", array{"key", "name", "namespace"}, "properties", object{
		"key":  described("string", "The key whose value is taken."),
		"name": described("string", "Name of the Secret."), "namespace": described("string", "Namespace of the Secret."),
	})
}

func conditions() object {
	return object{
		"type": "array", "description": "What is known about the object, one condition of each type.",
		"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": array{"type"},
		"items": object{
			"type": "object", "required": array{"lastTransitionTime", "reason", "status", "type"},
			"properties": object{
				"type":               described("string", "Type of the condition."),
				"status":             described("string", "True, False, or Unknown."),
				"reason":             described("string", "Why the condition changed last, in one word."),
				"message":            described("string", "Why the condition changed last, for people."),
				"lastTransitionTime": with(described("string", "When the status of the condition changed last."), "format", "date-time"),
				"observedGeneration": observedGeneration(),
			},
		},
	}
}

func observedGeneration() object {
	return with(described("integer", "The generation of the object for which this is true."), "format", "int64")
}
