// Package volume has the rules of volumes: those of pods, persistent volumes, claims and
// their templates.
//
// It knows types, and no kind. What a rule says may depend on what an object had before,
// so the rules are applied by the functions that know it: Validate, ValidatePersistent,
// ValidateInline and ValidateClaim. A Check that walks over an object leaves volumes and
// claims out.
package volume

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// Rules are the rules and defaults in Go of all types of volumes.
var Rules = rule.All(
	rule.Apart[corev1.Volume](),
	rule.Apart[corev1.PersistentVolumeSpec](),
	rule.Apart[corev1.PersistentVolumeClaimSpec](),
	rule.Apart[corev1.DownwardAPIVolumeFile](),
)

// Validate finds what is wrong with the volumes of a pod spec, at which c looks. It returns
// those that are valid, by name. old are the volumes that they take the place of: what those
// had already may stay. pod is the name of the pod, "" where that is not known.
func Validate(c *rule.Check, volumes, old []corev1.Volume, pod string) map[string]*corev1.Volume {
	out := map[string]*corev1.Volume{}
	return out
}

// Warn tells what the client should know of the volumes of a pod spec, at which c looks.
func Warn(c *rule.Check, volumes []corev1.Volume) {}

// Prepare drops of the volumes of a pod spec the fields of features that are off, unless
// one of the old volumes has them.
func Prepare(volumes, old []any) {}

// ValidatePersistent finds what is wrong with the spec of a persistent volume, at which c
// looks. old is the one that it takes the place of, or nil.
func ValidatePersistent(c *rule.Check, spec, old *corev1.PersistentVolumeSpec, name string) {}

// ValidateInline finds what is wrong with a spec of a persistent volume that is part of
// another object.
func ValidateInline(c *rule.Check, spec *corev1.PersistentVolumeSpec) {}

// ValidateClaim finds what is wrong with the spec of a claim, or of a template of claims, at
// which c looks. old is the one that it takes the place of, or nil.
func ValidateClaim(c *rule.Check, spec, old *corev1.PersistentVolumeClaimSpec) {}

// WarnOfClaim tells what the client should know of the spec of a claim, or of a template of
// claims, at which c looks.
func WarnOfClaim(c *rule.Check, spec *corev1.PersistentVolumeClaimSpec) {}

// ValidateFieldRef finds what is wrong with a reference to a field of a pod, at which c looks,
// which is one of paths, or an entry of its labels or annotations.
func ValidateFieldRef(c *rule.Check, ref *corev1.ObjectFieldSelector, paths ...string) {}

// ValidateResourceRef finds what is wrong with a reference to a resource of a container, at
// which c looks. A volume has to name the container.
func ValidateResourceRef(c *rule.Check, ref *corev1.ResourceFieldSelector, named bool) {}
