package serviceaccount

import (
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
)

const (
	// volumePrefix begins the name of the token volume.
	volumePrefix = "kube-api-access-"
	// mountPath is the path at which client libraries read the token.
	mountPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenLifetime is the lifetime of a token in seconds. It is that of Kubernetes, which
	// distinguishes these tokens from others by the odd number.
	tokenLifetime = 3607
)

// mountToken adds the token volume to each container without a mount at its path, and reports
// whether there was one. A pod that already has the volume does not get another.
func mountToken(spec object.Tree) bool {
	name, there := "", false
	for volume := range trees(spec, "volumes") {
		if name = kind.Text(volume, "name"); strings.HasPrefix(name, volumePrefix) {
			there = true
			break
		}
	}
	if !there {
		name = volumePrefix + rand.String(5)
	}
	mounted := false
	for _, list := range [...]string{"initContainers", "containers"} {
		for container := range trees(spec, list) {
			if !hasMount(container) {
				add(container, "volumeMounts", object.Tree{"mountPath": mountPath, "name": name, "readOnly": true})
				mounted = true
			}
		}
	}
	if mounted && !there {
		add(spec, "volumes", tokenVolume(name))
	}
	return mounted
}

// hasMount reports whether a container has a mount at the path of the token.
func hasMount(container object.Tree) bool {
	for mount := range trees(container, "volumeMounts") {
		if kind.Text(mount, "mountPath") == mountPath {
			return true
		}
	}
	return false
}

// tokenVolume has the files that a container needs to call the API: the token, the CA certificates,
// and the namespace.
func tokenVolume(name string) object.Tree {
	return object.Tree{"name": name, "projected": object.Tree{
		"defaultMode": int64(0o644),
		"sources": []any{
			object.Tree{"serviceAccountToken": object.Tree{"expirationSeconds": int64(tokenLifetime), "path": "token"}},
			object.Tree{"configMap": object.Tree{
				"items": []any{object.Tree{"key": "ca.crt", "path": "ca.crt"}},
				"name":  "kube-root-ca.crt",
			}},
			object.Tree{"downwardAPI": object.Tree{"items": []any{object.Tree{
				"fieldRef": object.Tree{"apiVersion": "v1", "fieldPath": "metadata.namespace"},
				"path":     "namespace",
			}}}},
		},
	}}
}

func add(t object.Tree, field string, value any) {
	list, _ := t[field].([]any)
	t[field] = append(list[:len(list):len(list)], value)
}

// trees iterates over the objects of a list in a field.
func trees(t object.Tree, field string) iter.Seq[object.Tree] {
	return func(yield func(object.Tree) bool) {
		list, _ := t[field].([]any)
		for _, e := range list {
			if e, ok := e.(object.Tree); ok && !yield(e) {
				return
			}
		}
	}
}
