package nodes

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// usedBy returns the first kind of objects that a pod refers to, as worded in errors, or "".
func usedBy(spec *corev1.PodSpec) (string, error) {
	if spec.ServiceAccountName != "" {
		return "serviceaccounts", nil
	}
	secrets, configMaps := ofContainers(spec)
	if secrets || slices.ContainsFunc(spec.ImagePullSecrets, func(r corev1.LocalObjectReference) bool { return r.Name != "" }) ||
		slices.ContainsFunc(spec.Volumes, needsSecret) {
		return "secrets", nil
	}
	if configMaps || slices.ContainsFunc(spec.Volumes, needsConfigMap) {
		return "configmaps", nil
	}
	if len(spec.ResourceClaims) > 0 {
		return "resourceclaims", nil
	}
	for i := range spec.Volumes {
		if used, err := usedByVolume(&spec.Volumes[i]); used != "" || err != nil {
			return used, err
		}
	}
	return "", nil
}

// ofContainers reports whether the environments of containers refer to Secrets and ConfigMaps.
func ofContainers(spec *corev1.PodSpec) (secrets, configMaps bool) {
	look := func(env []corev1.EnvVar, from []corev1.EnvFromSource) {
		for _, e := range from {
			secrets = secrets || e.SecretRef != nil && e.SecretRef.Name != ""
			configMaps = configMaps || e.ConfigMapRef != nil && e.ConfigMapRef.Name != ""
		}
		for _, e := range env {
			if of := e.ValueFrom; of != nil {
				secrets = secrets || of.SecretKeyRef != nil && of.SecretKeyRef.Name != ""
				configMaps = configMaps || of.ConfigMapKeyRef != nil && of.ConfigMapKeyRef.Name != ""
			}
		}
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			look(list[i].Env, list[i].EnvFrom)
		}
	}
	for i := range spec.EphemeralContainers {
		look(spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom)
	}
	return secrets, configMaps
}

// needsSecret reports whether the plugin of a volume refers to a Secret.
func needsSecret(v corev1.Volume) bool {
	named := func(r *corev1.LocalObjectReference) bool { return r != nil && r.Name != "" }
	switch {
	case v.AzureFile != nil:
		return v.AzureFile.SecretName != ""
	case v.CephFS != nil:
		return named(v.CephFS.SecretRef)
	case v.Cinder != nil:
		return named(v.Cinder.SecretRef)
	case v.FlexVolume != nil:
		return named(v.FlexVolume.SecretRef)
	case v.Projected != nil:
		return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.Secret != nil && s.Secret.Name != "" })
	case v.RBD != nil:
		return named(v.RBD.SecretRef)
	case v.Secret != nil:
		return v.Secret.SecretName != ""
	case v.ScaleIO != nil:
		return named(v.ScaleIO.SecretRef)
	case v.ISCSI != nil:
		return named(v.ISCSI.SecretRef)
	case v.StorageOS != nil:
		return named(v.StorageOS.SecretRef)
	case v.CSI != nil:
		return named(v.CSI.NodePublishSecretRef)
	}
	return false
}

func needsConfigMap(v corev1.Volume) bool {
	switch {
	case v.Projected != nil:
		return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ConfigMap != nil && s.ConfigMap.Name != "" })
	case v.ConfigMap != nil:
		return v.ConfigMap.Name != ""
	}
	return false
}

// usedByVolume is usedBy for one volume.
func usedByVolume(v *corev1.Volume) (string, error) {
	switch {
	case v.AWSElasticBlockStore != nil, v.AzureDisk != nil, v.CephFS != nil, v.Cinder != nil, v.DownwardAPI != nil, v.EmptyDir != nil,
		v.FC != nil, v.FlexVolume != nil, v.Flocker != nil, v.GCEPersistentDisk != nil, v.GitRepo != nil, v.HostPath != nil,
		v.Image != nil, v.ISCSI != nil, v.NFS != nil, v.PhotonPersistentDisk != nil, v.PortworxVolume != nil, v.Quobyte != nil,
		v.RBD != nil, v.ScaleIO != nil, v.StorageOS != nil, v.VsphereVolume != nil:
		return "", nil
	case v.ConfigMap != nil:
		return "configmaps (via configmap volumes)", nil
	case v.Secret != nil:
		return "secrets (via secret volumes)", nil
	case v.CSI != nil:
		return "csidrivers (via CSI volumes)", nil
	case v.Glusterfs != nil:
		return "endpoints (via glusterFS volumes)", nil
	case v.PersistentVolumeClaim != nil:
		return "persistentvolumeclaims", nil
	case v.Ephemeral != nil:
		return "persistentvolumeclaims (via ephemeral volumes)", nil
	case v.AzureFile != nil:
		return "secrets (via azureFile volumes)", nil
	case v.Projected != nil:
		return usedByProjection(v)
	}
	return "", fmt.Errorf("unknown volume type for volume  %q", v.Name)
}

func usedByProjection(v *corev1.Volume) (string, error) {
	for _, s := range v.Projected.Sources {
		switch {
		case s.ConfigMap != nil:
			return "configmaps (via projected volumes)", nil
		case s.Secret != nil:
			return "secrets (via projected volumes)", nil
		case s.ServiceAccountToken != nil:
			return "serviceaccounts (via projected volumes)", nil
		case s.ClusterTrustBundle != nil:
			return "clustertrustbundles", nil
		case s.PodCertificate != nil:
			return "podcertificates", nil
		case s.DownwardAPI == nil:
			return "", fmt.Errorf("unknown source for projected volume %q", v.Name)
		}
	}
	return "", nil
}
