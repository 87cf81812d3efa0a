package celpolicy

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// fields returns the fields of an object type, by name. A name with the prefix "?" is optional.
type fields map[string]*apiservercel.DeclType

func objectType(name string, all fields) *apiservercel.DeclType {
	declared := make(map[string]*apiservercel.DeclField, len(all))
	for name, t := range all {
		required := name[0] != '?'
		if !required {
			name = name[1:]
		}
		declared[name] = apiservercel.NewDeclField(name, t, required, nil, nil)
	}
	return apiservercel.NewObjectType("kubernetes."+name, declared)
}

func list(of *apiservercel.DeclType) *apiservercel.DeclType { return apiservercel.NewListType(of, -1) }

func texts(of *apiservercel.DeclType) *apiservercel.DeclType {
	return apiservercel.NewMapType(apiservercel.StringType, of, -1)
}

// requestType is the type of `request`. The objects are variables of their own.
func requestType() *apiservercel.DeclType {
	text := apiservercel.StringType
	kind := objectType("GroupVersionKind", fields{"group": text, "version": text, "kind": text})
	resource := objectType("GroupVersionResource", fields{"group": text, "version": text, "resource": text})
	return objectType("AdmissionRequest", fields{
		"kind": kind, "resource": resource, "?subResource": text,
		"requestKind": kind, "requestResource": resource, "?requestSubResource": text,
		"name": text, "?namespace": text, "operation": text,
		"userInfo": objectType("UserInfo", fields{
			"?username": text, "?uid": text, "?groups": list(text), "?extra": texts(list(text)),
		}),
		"?dryRun": apiservercel.BoolType, "?options": apiservercel.DynType,
	})
}

// namespaceType is the type of `namespaceObject`.
func namespaceType() *apiservercel.DeclType {
	text, time, number := apiservercel.StringType, apiservercel.TimestampType, apiservercel.IntType
	return objectType("Namespace", fields{
		"metadata": objectType("NamespaceMetadata", fields{
			"name": text, "generateName": text, "namespace": text, "UID": text, "resourceVersion": text,
			"labels": texts(text), "annotations": texts(text), "finalizers": list(text),
			"creationTimestamp": time, "deletionTimestamp": time,
			"deletionGracePeriodSeconds": number, "generation": number,
		}),
		"spec": objectType("NamespaceSpec", fields{"finalizers": list(text)}),
		"status": objectType("NamespaceStatus", fields{
			"phase": text,
			"conditions": list(objectType("NamespaceCondition", fields{
				"status": text, "type": text, "lastTransitionTime": time, "message": text, "reason": text,
			})),
		}),
	})
}

// scalars are the types of variables with the same type in declarations.
var scalars = map[*cel.Type]*apiservercel.DeclType{
	cel.AnyType:       apiservercel.AnyType,
	cel.BoolType:      apiservercel.BoolType,
	cel.BytesType:     apiservercel.BytesType,
	cel.DoubleType:    apiservercel.DoubleType,
	cel.DurationType:  apiservercel.DurationType,
	cel.IntType:       apiservercel.IntType,
	cel.NullType:      apiservercel.NullType,
	cel.StringType:    apiservercel.StringType,
	cel.TimestampType: apiservercel.TimestampType,
	cel.UintType:      apiservercel.UintType,
}

// declType returns the declared type of a variable: lists and maps with their elements, objects
// without fields.
func declType(t *cel.Type) *apiservercel.DeclType {
	if t == nil {
		return apiservercel.DynType
	}
	if known := scalars[t]; known != nil {
		return known
	}
	if !t.HasTrait(traits.ContainerType) || !t.HasTrait(traits.IndexerType) {
		return apiservercel.DynType
	}
	switch of := t.Parameters(); len(of) {
	case 1:
		return list(declType(of[0]))
	case 2:
		return apiservercel.NewMapType(declType(of[0]), declType(of[1]), -1)
	}
	return apiservercel.DynType
}
