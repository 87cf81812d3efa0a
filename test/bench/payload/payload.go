// Package payload makes the requests: definitions, objects and patches. A number determines all of it,
// so both servers receive the same bytes. The package does not know the server.
package payload

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The kind that most rows use: namespaced, 23 fields, two rules in CEL.
const (
	Group  = "bench.example.com"
	Plural = "widgets"
)

// A Kind is a kind Widget. Each group has one.
type Kind struct{ Group string }

// Objects is the path of all objects, or of the objects of a namespace.
func (k Kind) Objects(namespace string) string {
	if namespace == "" {
		return "/apis/" + k.Group + "/v1/" + Plural
	}
	return "/apis/" + k.Group + "/v1/namespaces/" + namespace + "/" + Plural
}

// Object is the path of the nth object.
func (k Kind) Object(namespace string, n int) string {
	return k.Objects(namespace) + "/" + Name(n)
}

// Name is the name of the nth object.
func Name(n int) string { return fmt.Sprintf("widget-%07d", n) }

// DefinitionsPath is the path of CustomResourceDefinitions.
const DefinitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// Definition is the CustomResourceDefinition of the kind, as JSON.
func (k Kind) Definition() []byte {
	text := func(most int) object { return object{"type": "string", "maxLength": most} }
	labelled := object{"type": "object", "additionalProperties": text(63), "maxProperties": 16}
	port := object{
		"type":     "object",
		"required": []string{"name", "port"},
		"properties": object{
			"name": text(63), "protocol": object{"type": "string", "default": "TCP", "enum": []string{"TCP", "UDP"}},
			"port": object{"type": "integer", "minimum": 1, "maximum": 65535}, "targetPort": object{"type": "integer"},
		},
	}
	spec := object{
		"type":     "object",
		"required": []string{"replicas", "image"},
		"properties": object{
			"replicas": object{"type": "integer", "minimum": 0},
			"most":     object{"type": "integer", "default": 10},
			"image":    text(256), "schedule": text(64), "owner": text(128), "description": text(2048),
			"paused":   object{"type": "boolean", "default": false},
			"selector": labelled, "settings": labelled,
			"ports": object{"type": "array", "maxItems": 16, "items": port, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []string{"name"}},
			"args":  object{"type": "array", "maxItems": 32, "items": text(256)},
			"resources": object{"type": "object", "properties": object{
				"cpu": text(32), "memory": text(32), "storage": text(32),
			}},
		},
		"x-kubernetes-validations": []object{
			{"rule": "self.replicas <= self.most", "message": "there are more replicas than there may be"},
			{"rule": "!has(self.ports) || self.ports.all(p, p.port != 22)", "message": "port 22 is taken"},
		},
	}
	status := object{"type": "object", "properties": object{
		"ready": object{"type": "integer"}, "phase": text(32), "observedGeneration": object{"type": "integer"},
	}}
	return k.wrap(object{"type": "object", "properties": object{"spec": spec, "status": status}})
}

type object map[string]any

func (k Kind) wrap(schema object) []byte {
	return encode(object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": Plural + "." + k.Group},
		"spec": object{
			"group": k.Group, "scope": "Namespaced",
			"names": object{"plural": Plural, "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []object{{
				"name": "v1", "served": true, "storage": true,
				"schema":       object{"openAPIV3Schema": schema},
				"subresources": object{"status": object{}},
			}},
		},
	})
}

// Least is the minimal size of an object in a response.
const Least = 1400

// Widget is the nth object, as JSON. The stored object, with the fields from the server, has about 1.7
// kB.
func (k Kind) Widget(namespace string, n int) []byte { return k.widget(namespace, n, n) }

func (k Kind) widget(namespace string, n, revision int) []byte {
	return encode(object{
		"apiVersion": k.Group + "/v1", "kind": "Widget",
		"metadata": object{
			"name": Name(n), "namespace": namespace,
			"labels":      object{"app.kubernetes.io/name": "widget", "shard": fmt.Sprint(n % 16)},
			"annotations": object{"example.com/contact": "the-team-that-owns-this@example.com"},
		},
		"spec": object{
			"replicas": 1 + revision%8, "image": fmt.Sprintf("registry.example.com/team/widget:v1.%d", revision),
			"schedule": "*/5 * * * *", "owner": "payments",
			"description": strings.Repeat("What this is for. ", 12),
			"selector":    object{"app": "widget", "tier": "backend"},
			"settings":    object{"log-level": "info", "region": "eu-central-1", "timeout": "30s"},
			"ports":       []object{{"name": "http", "port": 8080, "targetPort": 80}, {"name": "metrics", "port": 9090, "targetPort": 9090}},
			"args":        []string{"--serve", "--config=/etc/widget/config.yaml", "--workers=4"},
			"resources":   object{"cpu": "500m", "memory": "256Mi", "storage": "10Gi"},
		},
	})
}

// Applied is the nth object as an apply configuration of a client at its given revision.
func (k Kind) Applied(namespace string, n, revision int) []byte {
	return k.widget(namespace, n, revision)
}

// Patch is a merge patch that differs for each revision.
func Patch(revision int) []byte {
	return encode(object{"spec": object{"image": fmt.Sprintf("registry.example.com/team/widget:v2.%d", revision)}})
}

// Namespace is a Namespace, as JSON.
func Namespace(name string) []byte {
	return encode(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name}})
}

// encode marshals JSON with sorted keys: equal values give equal bytes.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // objects from this package always encode
	}
	return data
}
