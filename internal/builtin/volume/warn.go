package volume

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// Deprecated and removed sources, with the version.
var (
	goneInPods = []gone{
		{"photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
		{"gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
		{"scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
		{"flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"},
		{"storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
		{"quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"},
		{"glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
		{"cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
		{"rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"},
	}
	goneInPersistent = []gone{
		{"cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
		{"photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
		{"scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
		{"storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
		{"glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
		{"rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"},
	}
)

type gone struct{ name, told, since string }

func warnOfGone(c *rule.Check, volume any, sources []gone) {
	fields := reflect.ValueOf(volume).Elem()
	for _, s := range sources {
		if !sourceField(fields, s.name).IsNil() {
			c.Warn("%s: %s", c.At(s.told).Path(), s.since)
		}
	}
}

// Warn adds warnings about the volumes of a pod spec at c.
func Warn(c *rule.Check, volumes []corev1.Volume) {
	for i := range volumes {
		at := c.At(i)
		warnOfGone(at, &volumes[i].VolumeSource, goneInPods)
		if s := volumes[i].Ephemeral; s != nil && s.VolumeClaimTemplate != nil {
			WarnOfClaim(at.At("ephemeral", "volumeClaimTemplate", "spec"), &s.VolumeClaimTemplate.Spec)
		}
	}
	for i := range volumes {
		warnOfOverlaps(c, &volumes[i])
	}
}

// A target is a written path with its source, "" if that is clear.
type target struct{ path, by string }

func (t target) String() string {
	if t.by == "" {
		return fmt.Sprintf("%q", t.path)
	}
	return fmt.Sprintf("%q (%s)", t.path, t.by)
}

// warnOfOverlaps warns about paths that are written twice, or of which one is inside the other.
func warnOfOverlaps(c *rule.Check, v *corev1.Volume) {
	switch s := v.VolumeSource; {
	case s.ConfigMap != nil:
		warnOfTargets(c, v.Name, fmt.Sprintf("ConfigMap %q", s.ConfigMap.Name), targetsOf("", s.ConfigMap.Items))
	case s.Secret != nil:
		warnOfTargets(c, v.Name, fmt.Sprintf("Secret %q", s.Secret.SecretName), targetsOf("", s.Secret.Items))
	case s.DownwardAPI != nil:
		warnOfTargets(c, v.Name, "DownwardAPI", downwardTargets("", s.DownwardAPI.Items))
	case s.Projected != nil:
		var all []target
		for i := range s.Projected.Sources {
			p := &s.Projected.Sources[i]
			if *p == (corev1.VolumeProjection{}) {
				c.Warn("volume %q (Projected) has no sources provided", v.Name)
			}
			all = append(all, projectedTargets(p)...)
		}
		warnOfTargets(c, v.Name, "Projected", all)
	}
}

func targetsOf(by string, items []corev1.KeyToPath) (out []target) {
	for _, i := range items {
		out = append(out, target{i.Path, by})
	}
	return out
}

func downwardTargets(by string, items []corev1.DownwardAPIVolumeFile) (out []target) {
	for _, i := range items {
		out = append(out, target{i.Path, by})
	}
	return out
}

// projectedTargets returns the paths that the first source writes.
func projectedTargets(p *corev1.VolumeProjection) (out []target) {
	switch {
	case p.ConfigMap != nil && p.ConfigMap.Items != nil:
		return targetsOf(fmt.Sprintf("ConfigMap %q", p.ConfigMap.Name), p.ConfigMap.Items)
	case p.Secret != nil && p.Secret.Items != nil:
		return targetsOf(fmt.Sprintf("Secret %q", p.Secret.Name), p.Secret.Items)
	case p.DownwardAPI != nil && p.DownwardAPI.Items != nil:
		return downwardTargets("DownwardAPI", p.DownwardAPI.Items)
	case p.ServiceAccountToken != nil:
		return []target{{p.ServiceAccountToken.Path, "ServiceAccountToken"}}
	case p.ClusterTrustBundle != nil:
		name := cmp.Or(p.ClusterTrustBundle.Name, p.ClusterTrustBundle.SignerName, new(string))
		return []target{{p.ClusterTrustBundle.Path, fmt.Sprintf("ClusterTrustBundle %q", *name)}}
	case p.PodCertificate != nil:
		for _, t := range []target{
			{p.PodCertificate.CertificateChainPath, "PodCertificate chain"},
			{p.PodCertificate.KeyPath, "PodCertificate key"},
			{p.PodCertificate.CredentialBundlePath, "PodCertificate credential bundle"},
		} {
			if t.path != "" {
				out = append(out, t)
			}
		}
	}
	return out
}

func warnOfTargets(c *rule.Check, volume, source string, targets []target) {
	for i := range targets {
		t := &targets[i]
		if t.path = strings.TrimRight(t.path, "/"); t.path == "" {
			continue
		}
		for _, other := range targets[:i] {
			if other.path != "" && (strings.HasPrefix(other.path+"/", t.path+"/") || strings.HasPrefix(t.path+"/", other.path+"/")) {
				c.Warn("volume %q (%s): overlapping paths: %s with %s", volume, source, *t, other)
			}
		}
	}
}

// WarnOfPersistent adds warnings about the spec of a PersistentVolume at c.
func WarnOfPersistent(c *rule.Check, spec *corev1.PersistentVolumeSpec) {
	if spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		c.Warn("%s: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.",
			c.At("persistentVolumeReclaimPolicy").Path())
	}
	if spec.NodeAffinity != nil && spec.NodeAffinity.Required != nil {
		at := c.At("nodeAffinity", "required", "nodeSelectorTerms")
		for i := range spec.NodeAffinity.Required.NodeSelectorTerms {
			kind.WarnOfNodeSelectorTerm(at.At(i), &spec.NodeAffinity.Required.NodeSelectorTerms[i], false)
		}
	}
	warnOfGone(c, &spec.PersistentVolumeSource, goneInPersistent)
}
