package former

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The types of removed versions that differ from those of today. A package of Kubernetes' own types for them would
// link the code of all its types: a megabyte of program in all. The tag wire has the numbers of the fields in
// protobuf.

type deploymentObject struct {
	Metadata metav1.ObjectMeta       `json:"metadata,omitempty" wire:"1"`
	Spec     deploymentSpec          `json:"spec,omitempty" wire:"2"`
	Status   appsv1.DeploymentStatus `json:"status,omitempty" wire:"3"`
}

type deploymentSpec struct {
	Replicas                *int32                    `json:"replicas,omitempty" wire:"1"`
	Selector                *metav1.LabelSelector     `json:"selector,omitempty" wire:"2"`
	Template                corev1.PodTemplateSpec    `json:"template" wire:"3"`
	Strategy                appsv1.DeploymentStrategy `json:"strategy,omitempty" wire:"4"`
	MinReadySeconds         int32                     `json:"minReadySeconds,omitempty" wire:"5"`
	RevisionHistoryLimit    *int32                    `json:"revisionHistoryLimit,omitempty" wire:"6"`
	Paused                  bool                      `json:"paused,omitempty" wire:"7"`
	RollbackTo              *rollbackConfig           `json:"rollbackTo,omitempty" wire:"8"`
	ProgressDeadlineSeconds *int32                    `json:"progressDeadlineSeconds,omitempty" wire:"9"`
}

type rollbackConfig struct {
	Revision int64 `json:"revision,omitempty" wire:"1"`
}

type daemonSetObject struct {
	Metadata metav1.ObjectMeta      `json:"metadata,omitempty" wire:"1"`
	Spec     daemonSetSpec          `json:"spec,omitempty" wire:"2"`
	Status   appsv1.DaemonSetStatus `json:"status,omitempty" wire:"3"`
}

type daemonSetSpec struct {
	Selector             *metav1.LabelSelector          `json:"selector,omitempty" wire:"1"`
	Template             corev1.PodTemplateSpec         `json:"template" wire:"2"`
	UpdateStrategy       appsv1.DaemonSetUpdateStrategy `json:"updateStrategy,omitempty" wire:"3"`
	MinReadySeconds      int32                          `json:"minReadySeconds,omitempty" wire:"4"`
	TemplateGeneration   int64                          `json:"templateGeneration,omitempty" wire:"5"`
	RevisionHistoryLimit *int32                         `json:"revisionHistoryLimit,omitempty" wire:"6"`
}

type ingressObject struct {
	Metadata metav1.ObjectMeta          `json:"metadata,omitempty" wire:"1"`
	Spec     ingressSpec                `json:"spec,omitempty" wire:"2"`
	Status   networkingv1.IngressStatus `json:"status,omitempty" wire:"3"`
}

type ingressSpec struct {
	IngressClassName *string                   `json:"ingressClassName,omitempty" wire:"4"`
	Backend          *ingressBackend           `json:"backend,omitempty" wire:"1"`
	TLS              []networkingv1.IngressTLS `json:"tls,omitempty" wire:"2"`
	Rules            []ingressRule             `json:"rules,omitempty" wire:"3"`
}

type ingressRule struct {
	Host             string `json:"host,omitempty" wire:"1"`
	ingressRuleValue `json:",inline" wire:"2"`
}

type ingressRuleValue struct {
	HTTP *ingressPaths `json:"http,omitempty" wire:"1"`
}

type ingressPaths struct {
	Paths []ingressPath `json:"paths" wire:"1"`
}

type ingressPath struct {
	Path     string                 `json:"path,omitempty" wire:"1"`
	PathType *networkingv1.PathType `json:"pathType,omitempty" wire:"3"`
	Backend  ingressBackend         `json:"backend" wire:"2"`
}

type ingressBackend struct {
	ServiceName string                            `json:"serviceName,omitempty" wire:"1"`
	ServicePort intstr.IntOrString                `json:"servicePort,omitempty" wire:"2"`
	Resource    *corev1.TypedLocalObjectReference `json:"resource,omitempty" wire:"3"`
}

type endpointSliceObject struct {
	Metadata    metav1.ObjectMeta          `json:"metadata,omitempty" wire:"1"`
	AddressType discoveryv1.AddressType    `json:"addressType" wire:"4"`
	Endpoints   []endpoint                 `json:"endpoints" wire:"2"`
	Ports       []discoveryv1.EndpointPort `json:"ports" wire:"3"`
}

type endpoint struct {
	Addresses  []string                       `json:"addresses" wire:"1"`
	Conditions discoveryv1.EndpointConditions `json:"conditions,omitempty" wire:"2"`
	Hostname   *string                        `json:"hostname,omitempty" wire:"3"`
	TargetRef  *corev1.ObjectReference        `json:"targetRef,omitempty" wire:"4"`
	Topology   map[string]string              `json:"topology,omitempty" wire:"5"`
	NodeName   *string                        `json:"nodeName,omitempty" wire:"6"`
	Hints      *discoveryv1.EndpointHints     `json:"hints,omitempty" wire:"7"`
}

type runtimeClassObject struct {
	Metadata metav1.ObjectMeta `json:"metadata,omitempty" wire:"1"`
	Spec     runtimeClassSpec  `json:"spec" wire:"2"`
}

type runtimeClassSpec struct {
	RuntimeHandler string             `json:"runtimeHandler" wire:"1"`
	Overhead       *nodev1.Overhead   `json:"overhead,omitempty" wire:"2"`
	Scheduling     *nodev1.Scheduling `json:"scheduling,omitempty" wire:"3"`
}

// A roleObject is a Role or a ClusterRole.
type roleObject struct {
	Metadata        metav1.ObjectMeta       `json:"metadata,omitempty" wire:"1"`
	Rules           []policyRule            `json:"rules" wire:"2"`
	AggregationRule *rbacv1.AggregationRule `json:"aggregationRule,omitempty" wire:"3"`
}

type policyRule struct {
	Verbs           []string `json:"verbs" wire:"1"`
	APIGroups       []string `json:"apiGroups,omitempty" wire:"3"`
	Resources       []string `json:"resources,omitempty" wire:"4"`
	ResourceNames   []string `json:"resourceNames,omitempty" wire:"5"`
	NonResourceURLs []string `json:"nonResourceURLs,omitempty" wire:"6"`
}

// A bindingObject is a RoleBinding or a ClusterRoleBinding.
type bindingObject struct {
	Metadata metav1.ObjectMeta `json:"metadata,omitempty" wire:"1"`
	Subjects []subject         `json:"subjects,omitempty" wire:"2"`
	RoleRef  rbacv1.RoleRef    `json:"roleRef" wire:"3"`
}

type subject struct {
	Kind       string `json:"kind" wire:"1"`
	APIVersion string `json:"apiVersion,omitempty" wire:"2"`
	Name       string `json:"name" wire:"3"`
	Namespace  string `json:"namespace,omitempty" wire:"4"`
}
