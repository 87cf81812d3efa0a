package app

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/anykind/anykind/internal/admission"
	"github.com/anykind/anykind/internal/admission/certificates"
	"github.com/anykind/anykind/internal/admission/events"
	"github.com/anykind/anykind/internal/admission/imagepolicy"
	"github.com/anykind/anykind/internal/admission/networking"
	"github.com/anykind/anykind/internal/admission/nodes"
	"github.com/anykind/anykind/internal/admission/ownerreferences"
	"github.com/anykind/anykind/internal/admission/pods"
	"github.com/anykind/anykind/internal/admission/storage"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/stored"
)

// tolerationSeconds is the default toleration of pods for nodes that are not ready or unreachable.
const tolerationSeconds = 300

// pluginsOfKinds are the admission plugins for one kind or a few.
func (w *wired) pluginsOfKinds(o Options, core *resource.Set) []admission.Plugin {
	listed := sync.OnceValue(func() *stored.Lister[corev1.Node] {
		return stored.List[corev1.Node](w.cache, core, corev1.Resource("nodes"))
	})
	classes := sync.OnceValue(func() *stored.Lister[storagev1.StorageClass] {
		return stored.List[storagev1.StorageClass](w.cache, core, storagev1.Resource("storageclasses"))
	})
	return append(w.pluginsOfPods(o, core, listed), []admission.Plugin{
		{Name: "AlwaysAdmit", Make: admission.Always(admission.AlwaysAdmit{})},
		{Name: "AlwaysDeny", Make: admission.Always(admission.AlwaysDeny{})},
		{Name: "EventRateLimit", Make: func(config []byte) (any, error) { return events.New(config) }},
		{Name: "ImagePolicyWebhook", Make: func(config []byte) (any, error) {
			hook, err := imagepolicy.New(config, (&egress.Dialer{}).DialContext)
			if err == nil {
				w.later(func(context.Context) error { hook.Close(); return nil })
			}
			return hook, err
		}},
		{Name: "OwnerReferencesPermissionEnforcement", Make: admission.Always(&ownerreferences.PermissionEnforcement{Authorizer: w.authorizer, Kinds: w.catalog})},
		{Name: "NodeRestriction", Make: func([]byte) (any, error) {
			return &nodes.Restriction{
				Authorizer: w.authorizer, Nodes: listed(),
				Pods:            stored.List[corev1.Pod](w.cache, core, corev1.Resource("pods")),
				ServiceAccounts: stored.List[corev1.ServiceAccount](w.cache, core, corev1.Resource("serviceaccounts")),
				Claims:          stored.List[corev1.PersistentVolumeClaim](w.cache, core, corev1.Resource("persistentvolumeclaims")),
				Volumes:         stored.List[corev1.PersistentVolume](w.cache, core, corev1.Resource("persistentvolumes")),
				Drivers:         stored.List[storagev1.CSIDriver](w.cache, core, storagev1.Resource("csidrivers")),
			}, nil
		}},
		{Name: "TaintNodesByCondition", Make: admission.Always(nodes.TaintByCondition{})},
		{Name: "StorageObjectInUseProtection", Make: admission.Always(storage.InUseProtection{})},
		{Name: "DefaultStorageClass", Make: func([]byte) (any, error) { return &storage.DefaultStorageClass{Classes: classes()}, nil }},
		{Name: "PersistentVolumeClaimResize", Make: func([]byte) (any, error) { return &storage.ClaimResize{Classes: classes()}, nil }},
		{Name: "PodGroupProtection", Make: admission.Always(pods.GroupProtection{})},
		{Name: "CertificateApproval", Make: admission.Always(&certificates.Approval{Authorizer: w.authorizer})},
		{Name: "CertificateSigning", Make: admission.Always(&certificates.Signing{Authorizer: w.authorizer})},
		{Name: "ClusterTrustBundleAttest", Make: admission.Always(&certificates.Attest{Authorizer: w.authorizer})},
		{Name: "CertificateSubjectRestriction", Make: admission.Always(certificates.SubjectRestriction{})},
		{Name: "DefaultIngressClass", Make: func([]byte) (any, error) {
			return &networking.DefaultIngressClass{Classes: stored.List[networkingv1.IngressClass](w.cache, core, networkingv1.Resource("ingressclasses"))}, nil
		}},
		{Name: "DenyServiceExternalIPs", Make: admission.Always(networking.DenyServiceExternalIPs{})},
	}...)
}

// pluginsOfPods are the admission plugins for pods.
func (w *wired) pluginsOfPods(o Options, core *resource.Set, nodes func() *stored.Lister[corev1.Node]) []admission.Plugin {
	seconds := func(asked *int64) int64 {
		if asked == nil {
			return tolerationSeconds
		}
		return *asked
	}
	namespaces := sync.OnceValue(func() *stored.Lister[corev1.Namespace] {
		return stored.List[corev1.Namespace](w.cache, core, corev1.Resource("namespaces"))
	})
	return []admission.Plugin{
		{Name: "LimitPodHardAntiAffinityTopology", Make: admission.Always(pods.LimitHardAntiAffinity{})},
		{Name: "AlwaysPullImages", Make: admission.Always(pods.AlwaysPullImages{})},
		{Name: "PodNodeSelector", Make: func(config []byte) (any, error) {
			return &pods.NodeSelector{Namespaces: namespaces(), Selectors: pods.ReadNodeSelectors(config)}, nil
		}},
		{Name: "DefaultTolerationSeconds", Make: admission.Always(pods.DefaultTolerationSeconds{
			NotReady: seconds(o.Admission.NotReadySeconds), Unreachable: seconds(o.Admission.UnreachableSeconds),
		})},
		{Name: "PodTolerationRestriction", Make: func(config []byte) (any, error) {
			c, err := pods.ReadTolerations(config)
			return &pods.TolerationRestriction{Namespaces: namespaces(), Config: c}, err
		}},
		{Name: "ExtendedResourceToleration", Make: admission.Always(pods.ExtendedResourceToleration{})},
		{Name: "RuntimeClass", Make: func([]byte) (any, error) {
			return &pods.RuntimeClass{Classes: stored.List[nodev1.RuntimeClass](w.cache, core, nodev1.Resource("runtimeclasses"))}, nil
		}},
		{Name: "PodTopologyLabels", Make: func([]byte) (any, error) { return &pods.TopologyLabels{Nodes: nodes()}, nil }},
		{Name: "NodeDeclaredFeatureValidator", Make: func([]byte) (any, error) { return &pods.NodeDeclaredFeatures{Nodes: nodes()}, nil }},
		{Name: "PodResizeValidator", Make: func([]byte) (any, error) { return &pods.Resize{Nodes: nodes()}, nil }},
	}
}
