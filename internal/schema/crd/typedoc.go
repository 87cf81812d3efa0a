package crd

import (
	"maps"

	"github.com/anykind/anykind/internal/schema/gotype"
)

// typeDocs describe the Go types of CustomResourceDefinition for kubectl
// explain, by type and field; "" is the type itself. Other API types carry their
// descriptions with them.
func typeDocs() map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, some := range []map[string]map[string]string{definitionDocs(), versionDocs(), conversionDocs(), valueDocs()} {
		maps.Copy(out, some)
	}
	return out
}

// definitionDocs describe a definition as a whole.
func definitionDocs() map[string]map[string]string {
	return map[string]map[string]string{
		"CustomResourceDefinition": {
			"":         "CustomResourceDefinition adds a resource to the API. Its name is the plural name and the group of that resource, with a dot between them.",
			"metadata": "Metadata of the definition, as every object has it.",
			"spec":     "What the resource is to be.",
			"status":   "What the server has made of the definition.",
		},
		"CustomResourceDefinitionList": {
			"":         "CustomResourceDefinitionList is a list of CustomResourceDefinitions.",
			"items":    "The CustomResourceDefinitions.",
			"metadata": "Metadata of the list.",
		},
		"CustomResourceDefinitionSpec": {
			"":                      "CustomResourceDefinitionSpec says what a resource is to be.",
			"group":                 "The API group of the resource, as in /apis/GROUP. The name of the definition ends with it. It cannot be changed.",
			"names":                 "What the resource and its kind are called.",
			"scope":                 "Namespaced if each object is in a namespace, Cluster if none is. It cannot be changed.",
			"versions":              "The versions in which objects can be read and written. Exactly one of them is the one that objects are stored in. Discovery lists v2 before v1, v1 before v1beta1 and that before v1alpha1, then all other names by alphabet.",
			"conversion":            "How an object is turned from one version into another.",
			"preserveUnknownFields": "Must be false in new definitions. To keep fields that a schema does not know, say x-kubernetes-preserve-unknown-fields in that schema.",
		},
		"CustomResourceDefinitionNames": {
			"":           "CustomResourceDefinitionNames are what a resource and its kind are called.",
			"plural":     "The name of the resource in URLs, in lower case. The name of the definition begins with it.",
			"singular":   "The name for one object, in lower case. By default it is the kind in lower case.",
			"kind":       "What objects say in their kind field: one word in CamelCase, in the singular.",
			"listKind":   "What lists of objects say in their kind field. By default it is the kind followed by List.",
			"shortNames": "Shorter names that clients take for the resource, as in kubectl get SHORTNAME. They are in lower case.",
			"categories": "Groups of resources that this one belongs to, as all in kubectl get all.",
		},
		"CustomResourceDefinitionStatus": {
			"":                   "CustomResourceDefinitionStatus says what the server has made of a definition.",
			"acceptedNames":      "The names that are in use. A name of the spec is missing here while another definition holds it.",
			"conditions":         "What is true of the definition at present, and since when.",
			"observedGeneration": "The generation of the definition that this status is about.",
			"storedVersions":     "The versions in which objects may be stored. A version can be removed from the spec once it is removed from this list, after all of its objects are rewritten.",
		},
		"CustomResourceDefinitionCondition": {
			"":                   "CustomResourceDefinitionCondition is one statement about a definition.",
			"type":               "What it is about: Established, NamesAccepted or Terminating, among others.",
			"status":             "True, False or Unknown.",
			"reason":             "Why, as one word for programs.",
			"message":            "Why, in words for people.",
			"lastTransitionTime": "When status changed last.",
			"observedGeneration": "The generation of the definition that the condition is about. A smaller one than that in the metadata makes it an old statement.",
		},
	}
}

// versionDocs describe a version.
func versionDocs() map[string]map[string]string {
	return map[string]map[string]string{
		"CustomResourceDefinitionVersion": {
			"":                         "CustomResourceDefinitionVersion is one version of a resource.",
			"name":                     "The name of the version, as v1 or v2beta1. It is a part of URLs.",
			"served":                   "Whether the version can be used through the API.",
			"storage":                  "Whether objects are stored in this version. It is true for exactly one.",
			"deprecated":               "Whether every answer in this version warns that there are better ones.",
			"deprecationWarning":       "The words of that warning, where those of the server are not enough. Only for a deprecated version.",
			"schema":                   "What objects of this version look like. It is used to validate them, to drop what is unknown and to fill in defaults.",
			"subresources":             "Further paths to an object, for its status and its scale.",
			"additionalPrinterColumns": "The columns of a table of objects, after their names. Without any, a table has a column with the age.",
			"selectableFields":         "The fields, at most eight, that a field selector may name besides metadata.name and metadata.namespace.",
		},
		"CustomResourceColumnDefinition": {
			"":            "CustomResourceColumnDefinition is one column of a table of objects.",
			"name":        "The heading.",
			"type":        "The type of the values: integer, number, string, boolean or date.",
			"format":      "The OpenAPI format of the values, as int32 or date-time. The format name marks the column that says which object it is.",
			"description": "What the column shows, for people.",
			"priority":    "Zero for a column that is always shown. One with a higher number is shown where there is room, as with kubectl get -o wide.",
			"jsonPath":    "Where the value is in an object, as .spec.replicas.",
		},
		"CustomResourceSubresources": {
			"":       "CustomResourceSubresources are the further paths to an object.",
			"status": "Makes the path /status, through which nothing but the status can be changed. No other path changes it then.",
			"scale":  "Makes the path /scale, which shows an object as a Scale of autoscaling/v1.",
		},
		"CustomResourceSubresourceStatus": {
			"": "CustomResourceSubresourceStatus turns on the path /status. There is nothing to set.",
		},
		"CustomResourceSubresourceScale": {
			"":                   "CustomResourceSubresourceScale says where in an object the parts of a Scale are.",
			"specReplicasPath":   "Where the wanted number of replicas is. It is below .spec and has no brackets in it.",
			"statusReplicasPath": "Where the present number of replicas is. It is below .status and has no brackets in it.",
			"labelSelectorPath":  "Where the label selector of the replicas is, as a string. It is below .spec or .status and has no brackets in it. A HorizontalPodAutoscaler needs it.",
		},
	}
}

// conversionDocs returns the descriptions of conversion fields.
func conversionDocs() map[string]map[string]string {
	return map[string]map[string]string{
		"CustomResourceConversion": {
			"":         "CustomResourceConversion says how an object is turned from one version into another.",
			"strategy": "None if nothing but apiVersion differs between versions, Webhook if a service is to be asked.",
			"webhook":  "The service to ask. Required with the strategy Webhook.",
		},
		"WebhookConversion": {
			"":                         "WebhookConversion says how a conversion webhook is called.",
			"clientConfig":             "Where the webhook is and how it proves who it is.",
			"conversionReviewVersions": "The versions of ConversionReview that the webhook understands, the best first. The server uses the first one that it knows and cannot convert if it knows none.",
		},
		"WebhookClientConfig": {
			"":         "WebhookClientConfig says where a webhook is. It has a service or a URL, not both.",
			"url":      "Where the webhook is, as https://host:port/path. There may be no user, no query and no fragment in it.",
			"service":  "The service that is the webhook.",
			"caBundle": "The authorities, PEM, one of which must have signed the certificate of the webhook. Without it, those that the machine of the server trusts.",
		},
		"ServiceReference": {
			"":          "ServiceReference names a Service.",
			"namespace": "The namespace of the service.",
			"name":      "The name of the service.",
			"path":      "The path of the URL that is called.",
			"port":      "The port of the service, 443 by default.",
		},
	}
}

// valueDocs describe schemas.
func valueDocs() map[string]map[string]string {
	return map[string]map[string]string{
		"CustomResourceValidation": {
			"":                "CustomResourceValidation holds the schema of one version.",
			"openAPIV3Schema": "The schema, in OpenAPI v3.",
		},
		"SelectableField": {
			"":         "SelectableField names a field for field selectors.",
			"jsonPath": "Where the field is, as .spec.color, without brackets. It is a string, a boolean or an integer, not below metadata.",
		},
		"ExternalDocumentation": {"": "ExternalDocumentation says where there is more to read."},
		"JSON":                  {"": "JSON is any value: a boolean, a number, a string, a list, an object or null."},
		"JSONSchemaPropsOrArray": {
			"": "JSONSchemaPropsOrArray is a schema or a list of schemas.",
		},
		"JSONSchemaPropsOrBool": {
			"": "JSONSchemaPropsOrBool is a schema, or a boolean that says whether any value will do.",
		},
		"JSONSchemaPropsOrStringArray": {
			"": "JSONSchemaPropsOrStringArray is a schema or a list of names.",
		},
		"JSONSchemaProps": schemaDocs(),
		"ValidationRule":  ruleDocs(),
	}
}

// schemaDocs returns descriptions of keywords that JSON Schema lacks or defines differently.
func schemaDocs() map[string]string {
	return map[string]string{
		"":                                     "JSONSchemaProps is a JSON Schema with what Kubernetes adds to it.",
		"default":                              "The value that the field gets if it is not there.",
		"format":                               "What a string or number looks like beyond its type: date-time, email, uuid, byte, ipv4, cidr, int32 and double are some. A format that is not known is not checked.",
		"x-kubernetes-preserve-unknown-fields": "Keeps fields that the schema does not know, here and below, up to where a schema below names fields again. It is true or not there.",
		"x-kubernetes-embedded-resource":       "Says that the value is an object of the API with apiVersion, kind and metadata. Those need not be in the schema, and metadata is validated. The type is object.",
		"x-kubernetes-int-or-string":           "Says that the value is an integer or a string. There is no type then.",
		"x-kubernetes-list-type":               "How writers share a list. atomic: each replaces all of it. set: each adds and removes items of its own, which are not lists or objects, and no two are equal. map: the items are objects that x-kubernetes-list-map-keys tells apart. By default it is atomic.",
		"x-kubernetes-list-map-keys":           "The fields of an item that tell it from others. Only for the list type map. They are not lists or objects, and are required or have a default.",
		"x-kubernetes-map-type":                "How writers share an object. granular: each has fields of its own. atomic: each replaces all of it. By default it is granular.",
		"x-kubernetes-validations":             "Rules in CEL that every value has to satisfy.",
	}
}

func ruleDocs() map[string]string {
	return map[string]string{
		"":                  "ValidationRule is a rule in CEL that a value has to satisfy.",
		"rule":              "An expression that is true if the value is valid. self is the value. A rule that names oldSelf, the value before, is about changes and holds for a new value.",
		"message":           "What a client is told if the rule does not hold. Required if the rule is of several lines.",
		"messageExpression": "An expression whose result, a string, is what a client is told. It is used before message, unless it fails or gives nothing.",
		"reason":            "The kind of error that a client is told. By default it is FieldValueInvalid.",
		"fieldPath":         "The field that the error is about, as .spec.replicas from here on, if it is not the value as a whole.",
		"optionalOldSelf":   "Makes oldSelf an optional, so that a rule that names it is about new values too. Then oldSelf has no value.",
	}
}

// describe adds the descriptions to marks.
func describe(marks gotype.Marks, at string) gotype.Marks {
	for name, docs := range typeDocs() {
		of := marks[at+name]
		if of == nil {
			of = map[string]gotype.Mark{}
			marks[at+name] = of
		}
		for field, doc := range docs {
			m := of[field]
			m.Doc = doc
			of[field] = m
		}
	}
	return marks
}
