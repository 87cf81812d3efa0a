package builtin

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kube-aggregator/pkg/registry/apiservice"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/api/testing" // installs the groups
	_ "k8s.io/kubernetes/pkg/apis/apiserverinternal/install"
	_ "k8s.io/kubernetes/pkg/apis/lifecycle/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/resolver"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apiserverinternal/storageversion"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/certificates/clustertrustbundle"
	"k8s.io/kubernetes/pkg/registry/certificates/podcertificaterequest"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/coordination/leasecandidate"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/lifecycle/eviction"
	"k8s.io/kubernetes/pkg/registry/lifecycle/evictionrequest"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/devicetaintrule"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourcepoolstatusrequest"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/compositepodgroup"
	"k8s.io/kubernetes/pkg/registry/scheduling/podgroup"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/scheduling/workload"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
	"k8s.io/kubernetes/pkg/registry/storagemigration/storagemigration"
	"k8s.io/utils/clock"
)

// A Kind is a stored kind with kube-apiserver's code for it.
type Kind struct {
	Group, Version, Plural, Kind string
	Strategy                     rest.RESTCreateUpdateStrategy
	Subresources                 subresources
	scheme                       *runtime.Scheme
	codecs                       *serializer.CodecFactory
	storages                     map[string]*backed // in place of strategies
	of                           *Kind              // the same kind in another version, which has the corpus
	dual                         bool               // of a dual-stack cluster
}

type subresources map[string]rest.RESTUpdateStrategy

func status(s rest.RESTUpdateStrategy) subresources { return subresources{"status": s} }

// Kinds returns all stored kinds of kube-apiserver except CustomResourceDefinition, which test/oracle
// compares.
func Kinds() []*Kind {
	const (
		admission = "admissionregistration.k8s.io"
		certs     = "certificates.k8s.io"
		network   = "networking.k8s.io"
		rbac      = "rbac.authorization.k8s.io"
		dra       = "resource.k8s.io"
		storage   = "storage.k8s.io"
		flow      = "flowcontrol.apiserver.k8s.io"
	)
	aggregator := scheme.Scheme
	requests := podcertificaterequest.NewStrategy()
	policies := validatingadmissionpolicy.NewStrategy(nil, unresolved)
	claims := resourceclaim.NewStrategy(plainNamespaces{}, allowed{})
	rows := append(core(), []*Kind{
		{"apiregistration.k8s.io", "v1", "apiservices", "APIService", apiServices(aggregator), status(apiservice.NewStatusStrategy(aggregator)), aggregator, &scheme.Codecs, nil, nil, false},
		{"apps", "v1", "controllerrevisions", "ControllerRevision", controllerrevision.Strategy, nil, nil, nil, nil, nil, false},
		{"apps", "v1", "daemonsets", "DaemonSet", daemonset.Strategy, status(daemonset.StatusStrategy), nil, nil, nil, nil, false},
		{"apps", "v1", "deployments", "Deployment", deployment.Strategy, status(deployment.StatusStrategy), nil, nil, nil, nil, false},
		{"apps", "v1", "replicasets", "ReplicaSet", replicaset.Strategy, status(replicaset.StatusStrategy), nil, nil, nil, nil, false},
		{"apps", "v1", "statefulsets", "StatefulSet", statefulset.Strategy, status(statefulset.StatusStrategy), nil, nil, nil, nil, false},
		{"events.k8s.io", "v1", "events", "Event", event.Strategy, nil, nil, nil, nil, nil, false},
		{"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", horizontalpodautoscaler.Strategy, status(horizontalpodautoscaler.StatusStrategy), nil, nil, nil, nil, false},
		{"autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", horizontalpodautoscaler.Strategy, status(horizontalpodautoscaler.StatusStrategy), nil, nil, nil, nil, false},
		{"batch", "v1", "cronjobs", "CronJob", cronjob.Strategy, status(cronjob.StatusStrategy), nil, nil, nil, nil, false},
		{"batch", "v1", "jobs", "Job", job.Strategy, status(job.StatusStrategy), nil, nil, nil, nil, false},
		{certs, "v1", "certificatesigningrequests", "CertificateSigningRequest", certificates.Strategy, subresources{"status": certificates.StatusStrategy, "approval": certificates.ApprovalStrategy}, nil, nil, nil, nil, false},
		{certs, "v1", "clustertrustbundles", "ClusterTrustBundle", clustertrustbundle.Strategy, nil, nil, nil, nil, nil, false},
		{certs, "v1", "podcertificaterequests", "PodCertificateRequest", requests, status(podcertificaterequest.NewStatusStrategy(requests, allowed{}, clock.RealClock{})), nil, nil, nil, nil, false},
		{network, "v1", "ingressclasses", "IngressClass", ingressclass.Strategy, nil, nil, nil, nil, nil, false},
		{network, "v1", "ingresses", "Ingress", ingress.Strategy, status(ingress.StatusStrategy), nil, nil, nil, nil, false},
		{network, "v1", "ipaddresses", "IPAddress", ipaddress.Strategy, nil, nil, nil, nil, nil, false},
		{network, "v1", "networkpolicies", "NetworkPolicy", networkpolicy.Strategy, nil, nil, nil, nil, nil, false},
		{network, "v1", "servicecidrs", "ServiceCIDR", servicecidr.Strategy, status(servicecidr.StatusStrategy), nil, nil, nil, nil, false},
		{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", poddisruptionbudget.Strategy, status(poddisruptionbudget.StatusStrategy), nil, nil, nil, nil, false},
		{rbac, "v1", "clusterrolebindings", "ClusterRoleBinding", clusterrolebinding.Strategy, nil, nil, nil, nil, nil, false},
		{rbac, "v1", "clusterroles", "ClusterRole", clusterrole.Strategy, nil, nil, nil, nil, nil, false},
		{rbac, "v1", "rolebindings", "RoleBinding", rolebinding.Strategy, nil, nil, nil, nil, nil, false},
		{rbac, "v1", "roles", "Role", role.Strategy, nil, nil, nil, nil, nil, false},
		{storage, "v1", "csidrivers", "CSIDriver", csidriver.Strategy, nil, nil, nil, nil, nil, false},
		{storage, "v1", "csinodes", "CSINode", csinode.Strategy, status(csinode.StatusStrategy), nil, nil, nil, nil, false},
		{storage, "v1", "csistoragecapacities", "CSIStorageCapacity", csistoragecapacity.Strategy, nil, nil, nil, nil, nil, false},
		{storage, "v1", "storageclasses", "StorageClass", storageclass.Strategy, nil, nil, nil, nil, nil, false},
		{storage, "v1", "volumeattachments", "VolumeAttachment", volumeattachment.Strategy, status(volumeattachment.StatusStrategy), nil, nil, nil, nil, false},
		{storage, "v1", "volumeattributesclasses", "VolumeAttributesClass", volumeattributesclass.Strategy, nil, nil, nil, nil, nil, false},
		{admission, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", mutatingadmissionpolicy.NewStrategy(nil, unresolved), nil, nil, nil, nil, nil, false},
		{admission, "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", mutatingadmissionpolicybinding.NewStrategy(nil, nil, unresolved), nil, nil, nil, nil, nil, false},
		{admission, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", mutatingwebhookconfiguration.Strategy, nil, nil, nil, nil, nil, false},
		{admission, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", policies, status(validatingadmissionpolicy.NewStatusStrategy(policies)), nil, nil, nil, nil, false},
		{admission, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", validatingadmissionpolicybinding.NewStrategy(nil, nil, unresolved), nil, nil, nil, nil, nil, false},
		{admission, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", validatingwebhookconfiguration.Strategy, nil, nil, nil, nil, nil, false},
		{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", priorityclass.Strategy, nil, nil, nil, nil, nil, false},
		{"coordination.k8s.io", "v1", "leases", "Lease", lease.Strategy, nil, nil, nil, nil, nil, false},
		{"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", runtimeclass.Strategy, nil, nil, nil, nil, nil, false},
		{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", endpointslice.Strategy, nil, nil, nil, nil, nil, false},
		{dra, "v1", "deviceclasses", "DeviceClass", deviceclass.Strategy, nil, nil, nil, nil, nil, false},
		{dra, "v1", "devicetaintrules", "DeviceTaintRule", devicetaintrule.Strategy, status(devicetaintrule.StatusStrategy), nil, nil, nil, nil, false},
		{dra, "v1", "resourceclaims", "ResourceClaim", claims, status(resourceclaim.NewStatusStrategy(claims)), nil, nil, nil, nil, false},
		{dra, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", resourceclaimtemplate.NewStrategy(plainNamespaces{}), nil, nil, nil, nil, nil, false},
		{dra, "v1", "resourceslices", "ResourceSlice", resourceslice.Strategy, nil, nil, nil, nil, nil, false},
		{flow, "v1", "flowschemas", "FlowSchema", flowschema.Strategy, status(flowschema.StatusStrategy), nil, nil, nil, nil, false},
		{flow, "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration", prioritylevelconfiguration.Strategy, status(prioritylevelconfiguration.StatusStrategy), nil, nil, nil, nil, false},
		{"storagemigration.k8s.io", "v1", "storageversionmigrations", "StorageVersionMigration", storagemigration.Strategy, status(storagemigration.StatusStrategy), nil, nil, nil, nil, false},
		{"coordination.k8s.io", "v1beta1", "leasecandidates", "LeaseCandidate", leasecandidate.Strategy, nil, nil, nil, nil, nil, false},
		{dra, "v1alpha3", "resourcepoolstatusrequests", "ResourcePoolStatusRequest", resourcepoolstatusrequest.Strategy, status(resourcepoolstatusrequest.StatusStrategy), nil, nil, nil, nil, false},
		{"internal.apiserver.k8s.io", "v1alpha1", "storageversions", "StorageVersion", storageversion.Strategy, status(storageversion.StatusStrategy), nil, nil, nil, nil, false},
	}...)
	rows = append(rows, gatedKinds()...)
	rows = append(rows, others(rows)...)
	capabilities.Setup(true, 0) // --allow-privileged, as in every cluster
	asked := storages()
	for _, k := range rows {
		k.storages = asked[k.Plural]
		if k.scheme == nil {
			k.scheme, k.codecs = legacyscheme.Scheme, &legacyscheme.Codecs
		}
	}
	return append(rows, dualServices(rows))
}

// gatedKinds returns the kinds that need feature gates.
func gatedKinds() []*Kind {
	const groups, lifecycle = "scheduling.k8s.io", "lifecycle.k8s.io"
	podGroups, composites := podgroup.NewStrategy(), compositepodgroup.NewStrategy()
	evictions, evictionRequests := eviction.NewStrategy(clock.RealClock{}), evictionrequest.NewStrategy()
	return []*Kind{
		{groups, "v1beta1", "workloads", "Workload", workload.Strategy, nil, nil, nil, nil, nil, false},
		{groups, "v1beta1", "podgroups", "PodGroup", podGroups, status(podgroup.NewStatusStrategy(podGroups)), nil, nil, nil, nil, false},
		{groups, "v1alpha3", "compositepodgroups", "CompositePodGroup", composites, status(compositepodgroup.NewStatusStrategy(composites)), nil, nil, nil, nil, false},
		{lifecycle, "v1alpha1", "evictionrequests", "EvictionRequest", evictionRequests, status(evictionrequest.NewStatusStrategy(evictionRequests)), nil, nil, nil, nil, false},
		{lifecycle, "v1alpha1", "evictions", "Eviction", evictions, status(eviction.NewStatusStrategy(evictions)), nil, nil, nil, nil, false},
	}
}

// dualServices returns the Services of a dual-stack cluster.
func dualServices(rows []*Kind) *Kind {
	k := *rows[slices.IndexFunc(rows, func(k *Kind) bool { return k.Kind == "Service" })]
	k.dual, k.storages = true, map[string]*backed{"": {make: dualServiceStorage}}
	return &k
}

// otherVersions are the versions that are disabled by default. Their corpus is that of the first
// version.
var otherVersions = map[string][]string{
	"clustertrustbundles":             {"v1beta1"},
	"podcertificaterequests":          {"v1beta1"},
	"mutatingadmissionpolicies":       {"v1beta1", "v1alpha1"},
	"mutatingadmissionpolicybindings": {"v1beta1", "v1alpha1"},
	"leasecandidates":                 {"v1alpha2"},
	"deviceclasses":                   {"v1beta2", "v1beta1"},
	"devicetaintrules":                {"v1beta2", "v1alpha3"},
	"resourceclaims":                  {"v1beta2", "v1beta1"},
	"resourceclaimtemplates":          {"v1beta2", "v1beta1"},
	"resourceslices":                  {"v1beta2", "v1beta1"},
	"storageversionmigrations":        {"v1beta1"},
	"workloads":                       {"v1alpha3"},
	"podgroups":                       {"v1alpha3"},
}

// others returns the kinds of otherVersions.
func others(rows []*Kind) (out []*Kind) {
	for _, k := range rows {
		for _, version := range otherVersions[k.Plural] {
			other := *k
			other.Version, other.of = version, k
			out = append(out, &other)
		}
	}
	return out
}

// core returns the kinds of the core group.
func core() []*Kind {
	return []*Kind{
		{"", "v1", "configmaps", "ConfigMap", configmap.Strategy, nil, nil, nil, nil, nil, false},
		{"", "v1", "endpoints", "Endpoints", endpoint.Strategy, nil, nil, nil, nil, nil, false},
		{"", "v1", "events", "Event", event.Strategy, nil, nil, nil, nil, nil, false},
		{"", "v1", "limitranges", "LimitRange", limitrange.Strategy, nil, nil, nil, nil, nil, false},
		{"", "v1", "namespaces", "Namespace", namespace.Strategy, subresources{"status": namespace.StatusStrategy, "finalize": namespace.FinalizeStrategy}, nil, nil, nil, nil, false},
		{"", "v1", "nodes", "Node", node.Strategy, status(node.StatusStrategy), nil, nil, nil, nil, false},
		{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", persistentvolumeclaim.Strategy, status(persistentvolumeclaim.StatusStrategy), nil, nil, nil, nil, false},
		{"", "v1", "persistentvolumes", "PersistentVolume", persistentvolume.Strategy, status(persistentvolume.StatusStrategy), nil, nil, nil, nil, false},
		{"", "v1", "pods", "Pod", pod.Strategy, subresources{"status": pod.StatusStrategy, "ephemeralcontainers": pod.EphemeralContainersStrategy, "resize": pod.ResizeStrategy}, nil, nil, nil, nil, false},
		{"", "v1", "podtemplates", "PodTemplate", podtemplate.Strategy, nil, nil, nil, nil, nil, false},
		{"", "v1", "replicationcontrollers", "ReplicationController", replicationcontroller.Strategy, status(replicationcontroller.StatusStrategy), nil, nil, nil, nil, false},
		{"", "v1", "resourcequotas", "ResourceQuota", resourcequota.Strategy, status(resourcequota.StatusStrategy), nil, nil, nil, nil, false},
		{"", "v1", "secrets", "Secret", secret.Strategy, nil, nil, nil, nil, nil, false},
		{"", "v1", "serviceaccounts", "ServiceAccount", serviceaccount.Strategy, nil, nil, nil, nil, nil, false},
		{"", "v1", "services", "Service", service.Strategy, status(service.StatusStrategy), nil, nil, nil, nil, false},
	}
}

// apiServices returns the strategy of APIServices, for which the aggregator returns a narrower type.
func apiServices(typer runtime.ObjectTyper) rest.RESTCreateUpdateStrategy {
	return apiservice.NewStrategy(typer)
}

// allowed is an authorizer that allows everything, as for the administrator on our side.
type allowed struct{}

func (allowed) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}

// unresolved resolves nothing: no test has a parameter to resolve.
var unresolved = resolver.ResourceResolverFunc(func(schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	return schema.GroupVersionResource{}, errors.New("nothing is resolved")
})

// plainNamespaces returns every namespace, without labels.
type plainNamespaces struct{ clientv1.NamespaceInterface }

func (plainNamespaces) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
}
