// Package volume has the rules of volumes: those of pods, PersistentVolumes, claims and claim
// templates.
//
// It knows types, and no kind. A rule can depend on the old object. So Validate,
// ValidatePersistent, ValidateInline and ValidateClaim apply the rules, and a walk leaves out
// volumes and claims.
package volume

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// Rules are the Go rules and defaults for all types of volumes.
var Rules = rule.All(
	defaults, diskRules, fileRules,
	rule.On(validateEphemeral),
	rule.Apart[corev1.Volume](),
	rule.Apart[corev1.PersistentVolumeSpec](),
	rule.Apart[corev1.PersistentVolumeClaimSpec](),
	rule.Apart[corev1.DownwardAPIVolumeFile](),
)

// Validate validates the volumes of a pod spec at c. It returns the valid ones by name. old are the
// replaced ones: their invalid values may stay. pod is the name of the pod, "" if unknown.
func Validate(c *rule.Check, volumes, old []corev1.Volume, pod string) map[string]*corev1.Volume {
	in := &given{pod: pod, kept: keptOf(old)}
	rule.With(c, in)
	claims := map[string]bool{} // to be created for the pod
	for i := range volumes {
		if pod != "" && volumes[i].Ephemeral != nil {
			claims[pod+"-"+volumes[i].Name] = true
		}
	}
	valid := map[string]*corev1.Volume{}
	for i := range volumes {
		v, before := &volumes[i], len(c.Errors())
		in.at, in.volume = c.At(i), v
		validateSource(in.at, &v.VolumeSource, sourcesOfPods)
		if s := v.ISCSI; s != nil {
			validateISCSITotal(in.at.At("name"), v.Name, v.Name, s.TargetPortal, s.InitiatorName)
		}
		validateName(in.at.At("name"), v.Name)
		if valid[v.Name] != nil {
			in.at.At("name").Duplicate(v.Name)
		}
		if len(c.Errors()) == before {
			valid[v.Name] = v
		}
		if s := v.PersistentVolumeClaim; s != nil && claims[s.ClaimName] {
			in.at.At("persistentVolumeClaim", "claimName").Invalid(s.ClaimName, "must not reference a PVC that gets created for an ephemeral volume")
		}
	}
	return valid
}

func validateName(c *rule.Check, name string) {
	if name == "" {
		c.Required("")
		return
	}
	c.Invalids(name, validation.IsDNS1123Label(name))
}

// given has the pod and the volume for the rules of sources.
type given struct {
	kept
	pod    string
	at     *rule.Check // at the volume
	volume *corev1.Volume
}

// kept are exceptions from rules for values of the old volumes.
type kept struct {
	tokenPaths  bool // that leave the directory
	emptyImages bool
}

func keptOf(old []corev1.Volume) (k kept) {
	for _, v := range old {
		k.emptyImages = k.emptyImages || v.Image != nil && v.Image.Reference == ""
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			k.tokenPaths = k.tokenPaths || s.ServiceAccountToken != nil && len(rule.PathBelow(s.ServiceAccountToken.Path)) > 0
		}
	}
	return k
}

func validateEphemeral(c *rule.Check, s *corev1.EphemeralVolumeSource) {
	if s.VolumeClaimTemplate == nil {
		c.At("volumeClaimTemplate").Required("")
	} else {
		at := c.At("volumeClaimTemplate")
		validateTemplateMeta(at.At("metadata"), &s.VolumeClaimTemplate.ObjectMeta)
		ValidateClaim(at.At("spec"), &s.VolumeClaimTemplate.Spec, nil)
	}
	in := rule.Given[given](c)
	if in.pod == "" || in.volume.Name == "" {
		return
	}
	claim := in.pod + "-" + in.volume.Name
	for _, detail := range apivalidation.NameIsDNSSubdomain(claim, false) {
		in.at.At("name").Invalid(in.volume.Name, fmt.Sprintf("PVC name %q: %v", claim, detail))
	}
}
