package volume

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// fieldsOfPods are the fields of a pod that a reference can name.
var fieldsOfPods = []string{
	"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
	"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
	"status.hostIP", "status.hostIPs", "status.phase", "status.podIP", "status.podIPs",
}

// ValidateFieldRef validates a reference to a field of a pod at c. The field is one of paths, or an
// entry of the labels or annotations.
func ValidateFieldRef(c *rule.Check, ref *corev1.ObjectFieldSelector, paths ...string) {
	if ref.APIVersion == "" {
		c.At("apiVersion").Required("")
		return
	}
	at := c.At("fieldPath")
	if ref.FieldPath == "" {
		at.Required("")
		return
	}
	path, key, ofMap := mapEntry(ref.FieldPath)
	if path == "spec.host" {
		path = "spec.nodeName" // its older name
	}
	wrong := ""
	switch {
	case ref.APIVersion != "v1":
		wrong = "unsupported pod version: " + ref.APIVersion
	case ofMap && path != "metadata.annotations" && path != "metadata.labels":
		wrong = "field label does not support subscript: " + ref.FieldPath
	case !ofMap && !slices.Contains(fieldsOfPods, path):
		wrong = "field label not supported: " + ref.FieldPath
	}
	switch {
	case wrong != "":
		at.Invalid(ref.FieldPath, "error converting fieldPath: "+wrong)
	case path == "metadata.annotations" && ofMap:
		key = strings.ToLower(key)
		c.Invalids(key, validation.IsQualifiedName(key))
	case ofMap:
		c.Invalids(key, validation.IsQualifiedName(key))
	case !slices.Contains(paths, path):
		rule.NotSupported(at, path, paths...)
	}
}

// mapEntry parses a path such as metadata.labels['a'].
func mapEntry(path string) (of, key string, ok bool) {
	rest, ok := strings.CutSuffix(path, "']")
	if !ok {
		return path, "", false
	}
	of, key, ok = strings.Cut(rest, "['")
	if !ok || of == "" {
		return path, "", false
	}
	return of, key, true
}

var resourcesOfContainers = []string{
	"limits.cpu", "limits.ephemeral-storage", "limits.memory",
	"requests.cpu", "requests.ephemeral-storage", "requests.memory",
}

// ValidateResourceRef validates a reference to a resource of a container at c. With named, the
// container name is required.
func ValidateResourceRef(c *rule.Check, ref *corev1.ResourceFieldSelector, named bool) {
	_, resource, _ := strings.Cut(ref.Resource, ".")
	pages := strings.HasPrefix(ref.Resource, "limits.hugepages-") || strings.HasPrefix(ref.Resource, "requests.hugepages-")
	known := pages || slices.Contains(resourcesOfContainers, ref.Resource)
	switch {
	case named && ref.ContainerName == "":
		c.At("containerName").Required("")
	case ref.Resource == "":
		c.At("resource").Required("")
	case !known:
		rule.NotSupported(c.At("resource"), ref.Resource, resourcesOfContainers...)
	}
	if !known || ref.Divisor.IsZero() {
		return
	}
	divisors, name := "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei", resource
	switch {
	case resource == "cpu":
		divisors = "1m and 1"
	case resource == "ephemeral-storage":
		name = "local ephemeral storage"
	case pages:
		name = "hugepages"
	}
	words := strings.FieldsFunc(divisors, func(r rune) bool { return r == ',' || r == ' ' })
	if !slices.Contains(words, ref.Divisor.String()) {
		c.At("divisor").Invalid(ref.Resource, fmt.Sprintf("only divisor's values %s are supported with the %s resource", divisors, name))
	}
}
