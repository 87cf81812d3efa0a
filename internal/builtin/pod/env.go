package pod

import (
	corev1 "k8s.io/api/core/v1"
	namevalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/builtin/volume"
	"github.com/anykind/anykind/internal/object/gate"
)

// checkEnv validates the environment variables of a container at c.
func checkEnv(c *rule.Check, vars []corev1.EnvVar, pod *podContext) {
	for i := range vars {
		v, at := &vars[i], c.At("env", i)
		if v.Name == "" {
			at.At("name").Required("")
		} else {
			at.At("name").Invalids(v.Name, validation.IsRelaxedEnvVarName(v.Name))
		}
		if v.ValueFrom != nil {
			checkEnvSource(at.At("valueFrom"), v, pod)
		}
	}
}

func checkEnvSource(c *rule.Check, v *corev1.EnvVar, pod *podContext) {
	from, sources := v.ValueFrom, 0
	if from.FieldRef != nil {
		sources++
		volume.ValidateFieldRef(c.At("fieldRef"), from.FieldRef, fieldsOfEnv...)
	}
	if from.ResourceFieldRef != nil {
		sources++
		volume.ValidateResourceRef(c.At("resourceFieldRef"), from.ResourceFieldRef, false)
	}
	if r := from.ConfigMapKeyRef; r != nil {
		sources++
		checkKeyRef(c.At("configMapKeyRef"), r.Name, r.Key)
	}
	if r := from.SecretKeyRef; r != nil {
		sources++
		checkKeyRef(c.At("secretKeyRef"), r.Name, r.Key)
	}
	if from.FileKeyRef != nil {
		sources++
		checkFileKeyRef(c.At("fileKeyRef"), from.FileKeyRef, pod)
	}
	switch {
	case sources == 0:
		c.Invalid("", "must specify one of: "+envSources(c))
	case v.Value != "":
		c.Invalid("", "may not be specified when `value` is not empty")
	case sources > 1:
		c.Invalid("", "may not have more than one field specified at a time")
	}
}

// fieldsOfEnv are the fields of a pod that a variable can refer to.
var fieldsOfEnv = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
	"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
}

// checkKeyRef validates a reference to a key of a ConfigMap or a Secret.
func checkKeyRef(c *rule.Check, name, key string) {
	c.At("name").Invalids(name, namevalidation.NameIsDNSSubdomain(name, false))
	if key == "" {
		c.At("key").Required("")
		return
	}
	c.At("key").Invalids(key, validation.IsConfigMapKey(key))
}

func checkFileKeyRef(c *rule.Check, r *corev1.FileKeySelector, pod *podContext) {
	if r.Key == "" {
		c.At("key").Required("")
	} else {
		c.At("key").Invalids(r.Key, validation.IsRelaxedEnvVarName(r.Key))
	}
	if r.Path == "" {
		c.At("path").Required("")
	} else {
		c.At("path").Invalids(r.Path, rule.PathUp(r.Path))
	}
	at := c.At("volumeName")
	if r.VolumeName == "" {
		at.Required("")
	} else {
		at.Invalids(r.VolumeName, validation.IsDNS1123Label(r.VolumeName))
	}
	// The last volume of that name counts, even if invalid.
	for i := len(pod.spec.Volumes) - 1; i >= 0; i-- {
		if v := &pod.spec.Volumes[i]; v.Name == r.VolumeName {
			if v.EmptyDir == nil {
				at.Invalid(r.VolumeName, "referenced volume must be of type emptyDir")
			}
			return
		}
	}
	notFound(at, r.VolumeName)
}

// checkEnvFrom validates the sources of environment variables. Errors about the number of sources
// name the list.
func checkEnvFrom(c *rule.Check, list []corev1.EnvFromSource) {
	for i := range list {
		from, at, sources := &list[i], c.At(i), 0
		if from.Prefix != "" {
			at.At("prefix").Invalids(from.Prefix, validation.IsRelaxedEnvVarName(from.Prefix))
		}
		if from.ConfigMapRef != nil {
			sources++
			checkSourceName(at.At("configMapRef", "name"), from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			sources++
			checkSourceName(at.At("secretRef", "name"), from.SecretRef.Name)
		}
		switch {
		case sources == 0:
			c.Invalid("", "must specify one of: `configMapRef` or `secretRef`")
		case sources > 1:
			c.Invalid("", "may not have more than one field specified at a time")
		}
	}
}

// checkSourceName also allows the prefix of a name.
func checkSourceName(c *rule.Check, name string) {
	if name == "" {
		c.Required("")
		return
	}
	c.Invalids(name, namevalidation.NameIsDNSSubdomain(name, true))
}

// envSources returns the possible sources of a variable.
func envSources(c *rule.Check) string {
	if c.Gates.On(gate.EnvFiles) || rule.Given[inherited](c).envFiles {
		return "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
	}
	return "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
}
