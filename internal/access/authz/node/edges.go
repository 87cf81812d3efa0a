package node

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/store/watchcache"
)

// edgesOf returns the edges of an object. An unreadable object has none.
func edgesOf(by vertex, o *watchcache.Object) []edge {
	if o.Err() != nil {
		return nil
	}
	switch by.kind {
	case pods:
		return read(o, func(p *corev1.Pod) []edge { return ofPod(by, p) })
	case persistentVolumes:
		return read(o, func(v *corev1.PersistentVolume) []edge { return ofVolume(by, v) })
	default:
		return read(o, func(s *onNode) []edge {
			if s.Spec.NodeName == "" {
				return nil
			}
			return []edge{{from: by, node: s.Spec.NodeName}}
		})
	}
}

// onNode decodes the node name of an object.
type onNode struct {
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

func read[T any](o *watchcache.Object, edges func(*T) []edge) []edge {
	var content T
	if data, err := o.JSON(); err != nil || json.Unmarshal(data, &content) != nil {
		return nil
	}
	return edges(&content)
}

// ofPod returns the edges of a pod to its node: from the pod and all objects that it uses. A mirror
// pod has only the edge from itself.
func ofPod(by vertex, p *corev1.Pod) (edges []edge) {
	if p.Spec.NodeName == "" {
		return nil
	}
	edges = append(edges, edge{from: by, node: p.Spec.NodeName})
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return edges
	}
	uses := func(k kind, name string) {
		if name != "" {
			edges = append(edges, edge{from: vertex{k, by.namespace, name}, node: p.Spec.NodeName})
		}
	}
	uses(serviceAccounts, p.Spec.ServiceAccountName)
	for _, ref := range p.Spec.ImagePullSecrets {
		uses(secrets, ref.Name)
	}
	for _, c := range p.Spec.InitContainers {
		ofContainer(c.Env, c.EnvFrom, uses)
	}
	for _, c := range p.Spec.Containers {
		ofContainer(c.Env, c.EnvFrom, uses)
	}
	for _, c := range p.Spec.EphemeralContainers {
		ofContainer(c.Env, c.EnvFrom, uses)
	}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		ofSource(&v.VolumeSource, uses)
		if v.PersistentVolumeClaim == nil && v.Ephemeral != nil {
			uses(persistentVolumeClaims, by.name+"-"+v.Name)
		}
	}
	ofClaims(p, uses)
	return edges
}

func ofContainer(env []corev1.EnvVar, from []corev1.EnvFromSource, uses func(kind, string)) {
	for _, e := range from {
		if e.SecretRef != nil {
			uses(secrets, e.SecretRef.Name)
		}
		if e.ConfigMapRef != nil {
			uses(configMaps, e.ConfigMapRef.Name)
		}
	}
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if ref := e.ValueFrom.SecretKeyRef; ref != nil {
			uses(secrets, ref.Name)
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			uses(configMaps, ref.Name)
		}
	}
}

// ofSource calls uses for each object in the source of a volume.
func ofSource(s *corev1.VolumeSource, uses func(kind, string)) {
	secret := func(ref *corev1.LocalObjectReference) {
		if ref != nil {
			uses(secrets, ref.Name)
		}
	}
	switch {
	case s.AzureFile != nil:
		uses(secrets, s.AzureFile.SecretName)
	case s.CephFS != nil:
		secret(s.CephFS.SecretRef)
	case s.Cinder != nil:
		secret(s.Cinder.SecretRef)
	case s.FlexVolume != nil:
		secret(s.FlexVolume.SecretRef)
	case s.Projected != nil:
		for _, one := range s.Projected.Sources {
			if one.Secret != nil {
				uses(secrets, one.Secret.Name)
			}
			if one.ConfigMap != nil {
				uses(configMaps, one.ConfigMap.Name)
			}
		}
	case s.RBD != nil:
		secret(s.RBD.SecretRef)
	case s.Secret != nil:
		uses(secrets, s.Secret.SecretName)
	case s.ScaleIO != nil:
		secret(s.ScaleIO.SecretRef)
	case s.ISCSI != nil:
		secret(s.ISCSI.SecretRef)
	case s.StorageOS != nil:
		secret(s.StorageOS.SecretRef)
	case s.CSI != nil:
		secret(s.CSI.NodePublishSecretRef)
	case s.ConfigMap != nil:
		uses(configMaps, s.ConfigMap.Name)
	case s.PersistentVolumeClaim != nil:
		uses(persistentVolumeClaims, s.PersistentVolumeClaim.ClaimName)
	}
}

// ofClaims calls uses for the ResourceClaims of a pod: those that it names, and those that its
// status names as generated for it.
func ofClaims(p *corev1.Pod, uses func(kind, string)) {
	for _, claim := range p.Spec.ResourceClaims {
		switch {
		case claim.ResourceClaimName != nil:
			uses(resourceClaims, *claim.ResourceClaimName)
		case claim.ResourceClaimTemplateName != nil:
			for _, made := range p.Status.ResourceClaimStatuses {
				if made.Name == claim.Name {
					if made.ResourceClaimName != nil {
						uses(resourceClaims, *made.ResourceClaimName)
					}
					break
				}
			}
		}
	}
	if made := p.Status.ExtendedResourceClaimStatus; made != nil {
		uses(resourceClaims, made.ResourceClaimName)
	}
}

// ofVolume returns the edges of a PersistentVolume: access to its claim implies access to the volume
// and to the secrets that a kubelet needs to mount it.
func ofVolume(by vertex, v *corev1.PersistentVolume) []edge {
	ref := v.Spec.ClaimRef
	if ref == nil {
		return nil
	}
	edges := []edge{{from: by, to: vertex{persistentVolumeClaims, ref.Namespace, ref.Name}}}
	uses := func(namespace, name string) {
		if name != "" {
			edges = append(edges, edge{from: vertex{secrets, namespace, name}, to: by})
		}
	}
	secret := func(s *corev1.SecretReference) {
		if s != nil {
			uses(s.Namespace, s.Name)
		}
	}
	// Some volume types have an optional namespace of the secret. It defaults to that of the claim.
	besideClaim := func(s *corev1.SecretReference) {
		if s != nil && s.Namespace == metav1.NamespaceNone {
			s = &corev1.SecretReference{Namespace: ref.Namespace, Name: s.Name}
		}
		secret(s)
	}
	switch s := &v.Spec.PersistentVolumeSource; {
	case s.AzureFile != nil:
		one := &corev1.SecretReference{Name: s.AzureFile.SecretName}
		if s.AzureFile.SecretNamespace != nil {
			one.Namespace = *s.AzureFile.SecretNamespace
		}
		besideClaim(one)
	case s.CephFS != nil:
		besideClaim(s.CephFS.SecretRef)
	case s.Cinder != nil:
		secret(s.Cinder.SecretRef)
	case s.FlexVolume != nil:
		besideClaim(s.FlexVolume.SecretRef)
	case s.RBD != nil:
		besideClaim(s.RBD.SecretRef)
	case s.ScaleIO != nil:
		besideClaim(s.ScaleIO.SecretRef)
	case s.ISCSI != nil:
		besideClaim(s.ISCSI.SecretRef)
	case s.StorageOS != nil:
		if o := s.StorageOS.SecretRef; o != nil {
			uses(o.Namespace, o.Name)
		}
	case s.CSI != nil: // Its other secrets are for controllers.
		secret(s.CSI.NodePublishSecretRef)
		secret(s.CSI.NodeStageSecretRef)
		secret(s.CSI.NodeExpandSecretRef)
	}
	return edges
}
