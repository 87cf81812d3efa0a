package pod

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

// Annotations that a server interprets. Some are older forms of fields.
const (
	mirrorAnnotation      = corev1.MirrorPodAnnotationKey
	tolerationsAnnotation = "scheduler.alpha.kubernetes.io/tolerations"
	costAnnotation        = corev1.PodDeletionCost
	seccompAnnotation     = corev1.SeccompPodAnnotationKey
	seccompOfContainer    = corev1.SeccompContainerAnnotationKeyPrefix
	appArmorAnnotation    = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix
)

// checkAnnotations validates the annotations of a pod or a template at c. old are the replaced
// ones, or nil.
func checkAnnotations(c *rule.Check, meta, old *metav1.ObjectMeta, spec *corev1.PodSpec) {
	annotations := meta.Annotations
	if value, ok := annotations[mirrorAnnotation]; ok && spec.NodeName == "" {
		c.AtKey(mirrorAnnotation).Invalid(value, "must set spec.nodeName if mirror pod annotation is set")
	}
	if text := annotations[tolerationsAnnotation]; text != "" {
		var tolerations []corev1.Toleration
		if err := json.Unmarshal([]byte(text), &tolerations); err != nil {
			c.Invalid(tolerationsAnnotation, strings.ReplaceAll(err.Error(), "v1.", "core."))
		}
		for i := range tolerations {
			checkToleration(c.At(tolerationsAnnotation, i), &tolerations[i])
		}
	}
	if c.Gates.On(gate.PodDeletionCost) && (old == nil || isCost(old.Annotations)) {
		if !isCost(annotations) {
			c.AtKey(costAnnotation).Invalid(annotations[costAnnotation], "must be a 32bit integer")
		}
	}
	for _, key := range kind.SortedKeys(annotations) {
		value := annotations[key]
		if key == seccompAnnotation || strings.HasPrefix(key, seccompOfContainer) {
			checkSeccompText(c.At(key), value)
		}
		name, ok := strings.CutPrefix(key, appArmorAnnotation)
		if !ok {
			continue
		}
		at := c.AtKey(key)
		if !hasContainer(spec, name) {
			at.Invalid(name, "container not found")
		}
		if !isAppArmor(value) {
			at.Invalid(value, fmt.Sprintf("invalid AppArmor profile name: %q", value))
		}
	}
}

// isCost reports whether the deletion cost in annotations is missing or an integer without leading
// zeros or plus sign.
func isCost(annotations map[string]string) bool {
	text, ok := annotations[costAnnotation]
	if !ok {
		return true
	}
	_, err := strconv.ParseInt(text, 10, 32)
	return err == nil && text[0] != '+' && (text[0] != '0' || text == "0")
}

func checkSeccompText(c *rule.Check, profile string) {
	switch profile {
	case corev1.SeccompProfileRuntimeDefault, corev1.DeprecatedSeccompProfileDockerDefault, corev1.SeccompProfileNameUnconfined:
		return
	}
	file, ok := strings.CutPrefix(profile, corev1.SeccompLocalhostProfileNamePrefix)
	if !ok {
		c.Invalid(profile, "must be a valid seccomp profile")
		return
	}
	checkDescending(c, file)
}

func hasContainer(spec *corev1.PodSpec, name string) bool {
	for x := range containersOf(spec) {
		if x.Name == name {
			return true
		}
	}
	return false
}

func isAppArmor(profile string) bool {
	return slices.Contains([]string{"", corev1.DeprecatedAppArmorBetaProfileRuntimeDefault, corev1.DeprecatedAppArmorBetaProfileNameUnconfined}, profile) ||
		strings.HasPrefix(profile, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
}

// checkAnnotatedProfiles rejects profiles in annotations that differ from the fields. c is at the
// spec.
func checkAnnotatedProfiles(c *rule.Check, annotations map[string]string, spec *corev1.PodSpec) {
	if len(annotations) == 0 {
		return
	}
	sc := spec.SecurityContext
	if sc == nil {
		sc = &corev1.PodSecurityContext{}
	}
	if said, ok := annotations[seccompAnnotation]; ok {
		checkSameSeccomp(c.At("securityContext", "seccompProfile"), said, sc.SeccompProfile)
	}
	windows := spec.OS != nil && spec.OS.Name == corev1.Windows
	eachContainer(c, spec, func(at *rule.Check, x *corev1.Container) {
		own := x.SecurityContext
		if own == nil {
			own = &corev1.SecurityContext{}
		}
		if said, ok := annotations[seccompOfContainer+x.Name]; ok {
			checkSameSeccomp(at.At("securityContext", "seccompProfile"), said, own.SeccompProfile)
		}
		if said, ok := annotations[appArmorAnnotation+x.Name]; ok && !windows {
			profile := sc.AppArmorProfile
			if own.AppArmorProfile != nil {
				profile = own.AppArmorProfile
			}
			checkSameAppArmor(at.At("securityContext", "appArmorProfile"), said, profile)
		}
	})
}

func checkSameSeccomp(c *rule.Check, annotation string, p *corev1.SeccompProfile) {
	if p == nil {
		return
	}
	const detail = "seccomp type in annotation and field must match"
	same := true
	switch p.Type {
	case corev1.SeccompProfileTypeUnconfined:
		same = annotation == corev1.SeccompProfileNameUnconfined
	case corev1.SeccompProfileTypeRuntimeDefault:
		same = annotation == corev1.SeccompProfileRuntimeDefault || annotation == corev1.DeprecatedSeccompProfileDockerDefault
	case corev1.SeccompProfileTypeLocalhost:
		var file string
		if file, same = strings.CutPrefix(annotation, corev1.SeccompLocalhostProfileNamePrefix); same && !isText(p.LocalhostProfile, file) {
			c.At("localhostProfile").Forbidden("seccomp profile in annotation and field must match")
		}
	}
	if !same {
		c.At("type").Forbidden(detail)
	}
}

func checkSameAppArmor(c *rule.Check, annotation string, p *corev1.AppArmorProfile) {
	if p == nil {
		return
	}
	same := true
	switch p.Type {
	case corev1.AppArmorProfileTypeUnconfined:
		same = annotation == corev1.DeprecatedAppArmorBetaProfileNameUnconfined
	case corev1.AppArmorProfileTypeRuntimeDefault:
		same = annotation == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault
	case corev1.AppArmorProfileTypeLocalhost:
		var name string
		if name, same = strings.CutPrefix(annotation, corev1.DeprecatedAppArmorBetaProfileNamePrefix); same && !isText(p.LocalhostProfile, name) {
			c.At("localhostProfile").Forbidden("apparmor profile in annotation and field must match")
		}
	}
	if !same {
		c.At("type").Forbidden("apparmor type in annotation and field must match")
	}
}

func isText(s *string, text string) bool { return s != nil && *s == text }

// checkAnnotationChange rejects changes of immutable annotations at c.
func checkAnnotationChange(c *rule.Check, annotations, old map[string]string) {
	check := func(key, doing string) {
		switch {
		case strings.HasPrefix(key, appArmorAnnotation):
			c.AtKey(key).Forbidden("may not " + doing + " AppArmor annotations")
		case key == mirrorAnnotation:
			c.AtKey(key).Forbidden("may not " + doing + " mirror pod annotation")
		}
	}
	for _, key := range kind.SortedKeys(old) {
		if value, ok := annotations[key]; !ok || value != old[key] {
			check(key, "remove or update")
		}
	}
	for _, key := range kind.SortedKeys(annotations) {
		if _, ok := old[key]; !ok {
			check(key, "add")
		}
	}
}
