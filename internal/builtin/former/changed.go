package former

import (
	"fmt"
	"math"
	"slices"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/kind"
)

// changed are versions with renamed or moved fields, or with other defaults. If two versions have
// the same fields, the Go type of one serves both.
var changed = map[schema.GroupVersionKind]Version{
	of("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration"):      {raise: webhooks},
	of("admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration"):    {raise: webhooks},
	of("apps/v1beta1", "Deployment"):                                                {messageOf[deploymentObject], betaDeployment},
	of("apps/v1beta1", "StatefulSet"):                                               {raise: betaStatefulSet},
	of("certificates.k8s.io/v1beta1", "CertificateSigningRequest"):                  {func() Message { return new(certificatesv1beta1.CertificateSigningRequest) }, signingRequest},
	of("discovery.k8s.io/v1beta1", "EndpointSlice"):                                 {messageOf[endpointSliceObject], endpointSlice},
	of("events.k8s.io/v1beta1", "Event"):                                            {func() Message { return new(eventsv1.Event) }, event},
	of("extensions/v1beta1", "DaemonSet"):                                           {messageOf[daemonSetObject], daemonSet},
	of("extensions/v1beta1", "Deployment"):                                          {messageOf[deploymentObject], deployment},
	of("extensions/v1beta1", "Ingress"):                                             {messageOf[ingressObject], ingress},
	of("extensions/v1beta1", "ReplicaSet"):                                          {raise: selectTemplate},
	of("flowcontrol.apiserver.k8s.io/v1beta1", "PriorityLevelConfiguration"):        {raise: assuredShares},
	of("flowcontrol.apiserver.k8s.io/v1beta2", "PriorityLevelConfiguration"):        {raise: assuredShares},
	of("flowcontrol.apiserver.k8s.io/v1beta3", "PriorityLevelConfiguration"):        {raise: nominalShares},
	of("networking.k8s.io/v1beta1", "Ingress"):                                      {messageOf[ingressObject], ingress},
	of("node.k8s.io/v1alpha1", "RuntimeClass"):                                      {messageOf[runtimeClassObject], runtimeClass},
	of("policy/v1beta1", "PodDisruptionBudget"):                                     {raise: budget},
	of("rbac.authorization.k8s.io/v1alpha1", "ClusterRoleBinding"):                  {messageOf[bindingObject], binding},
	of("rbac.authorization.k8s.io/v1alpha1", "ClusterRole"):                         {Object: messageOf[roleObject]},
	of("rbac.authorization.k8s.io/v1alpha1", "Role"):                                {Object: messageOf[roleObject]},
	of("admissionregistration.k8s.io/v1alpha1", "ValidatingAdmissionPolicyBinding"): {raise: policyBinding},
	of("rbac.authorization.k8s.io/v1alpha1", "RoleBinding"):                         {messageOf[bindingObject], binding},
}

func of(apiVersion, kind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

// each calls f with the objects of a list.
func each(list []any, f func(item map[string]any)) {
	for _, i := range list {
		if item, ok := i.(map[string]any); ok {
			f(item)
		}
	}
}

// rename moves a field, if it is there.
func rename(obj map[string]any, from, to string) {
	if v, ok := obj[from]; ok {
		delete(obj, from)
		obj[to] = v
	}
}

// webhooks sets the defaults of v1beta1, which differ from those of v1.
func webhooks(obj map[string]any) {
	each(kind.List(obj, "webhooks"), func(webhook map[string]any) {
		for name, value := range map[string]string{"failurePolicy": "Ignore", "matchPolicy": "Exact", "sideEffects": "Unknown"} {
			kind.SetMissing(webhook, name, value)
		}
		kind.SetMissing(webhook, "timeoutSeconds", int64(30))
		if len(kind.List(webhook, "admissionReviewVersions")) == 0 {
			webhook["admissionReviewVersions"] = []any{"v1beta1"}
		}
	})
}

// policyBinding sets parameterNotFoundAction, which the old version lacks, to Deny.
func policyBinding(obj map[string]any) {
	if params := kind.Tree(obj, "spec", "paramRef"); params != nil {
		kind.SetMissing(params, "parameterNotFoundAction", "Deny")
	}
}

// selectTemplate sets missing labels and a missing selector to the labels of the template.
func selectTemplate(obj map[string]any) {
	labels := kind.Tree(obj, "spec", "template", "metadata", "labels")
	if labels == nil {
		return
	}
	spec, metadata := kind.Tree(obj, "spec"), kind.Child(obj, "metadata")
	if spec["selector"] == nil {
		kind.Put(spec, "selector", map[string]any{"matchLabels": labels})
	}
	if len(kind.Tree(metadata, "labels")) == 0 {
		kind.Put(metadata, "labels", labels)
	}
}

// deployment sets defaults of extensions/v1beta1.
func deployment(obj map[string]any) {
	spec := kind.Child(obj, "spec")
	kind.SetMissing(spec, "progressDeadlineSeconds", int64(math.MaxInt32))
	kind.SetMissing(spec, "revisionHistoryLimit", int64(math.MaxInt32))
	strategy := kind.Child(spec, "strategy")
	if rolling := kind.Tree(strategy, "rollingUpdate"); slices.Contains([]string{"", "RollingUpdate"}, kind.Text(strategy, "type")) || rolling != nil {
		rolling = kind.Child(strategy, "rollingUpdate")
		kind.SetMissing(rolling, "maxUnavailable", int64(1))
		kind.SetMissing(rolling, "maxSurge", int64(1))
	}
	rollback(obj)
}

// betaDeployment sets defaults of apps/v1beta1.
func betaDeployment(obj map[string]any) {
	kind.SetMissing(kind.Child(obj, "spec"), "revisionHistoryLimit", int64(2))
	rollback(obj)
}

// rollback moves rollbackTo to an annotation.
func rollback(obj map[string]any) {
	selectTemplate(obj)
	spec := kind.Tree(obj, "spec")
	if to := kind.Tree(spec, "rollbackTo"); to != nil {
		annotate(obj, "deprecated.deployment.rollback.to", to["revision"])
		delete(spec, "rollbackTo")
	}
}

// annotate adds a number as an annotation, 0 if missing.
func annotate(obj map[string]any, name string, number any) {
	if number == nil {
		number = 0
	}
	kind.Child(kind.Child(obj, "metadata"), "annotations")[name] = fmt.Sprint(number)
}

func daemonSet(obj map[string]any) {
	selectTemplate(obj)
	spec := kind.Child(obj, "spec")
	kind.SetDefault(kind.Child(spec, "updateStrategy"), "type", "OnDelete")
	annotate(obj, "deprecated.daemonset.template.generation", spec["templateGeneration"])
	delete(spec, "templateGeneration")
}

func betaStatefulSet(obj map[string]any) {
	selectTemplate(obj)
	kind.SetDefault(kind.Child(kind.Child(obj, "spec"), "updateStrategy"), "type", "OnDelete")
}

// signingRequest sets a missing signer.
func signingRequest(obj map[string]any) {
	spec := kind.Child(obj, "spec")
	kind.SetMissing(spec, "usages", []any{"digital signature", "key encipherment"})
	kind.SetMissing(spec, "signerName", certificatesv1beta1.LegacyUnknownSignerName)
	each(kind.List(obj, "status", "conditions"), func(condition map[string]any) {
		kind.SetDefault(condition, "status", "True")
	})
}

// endpointSlice moves the zone out of the deprecated topology.
func endpointSlice(obj map[string]any) {
	each(kind.List(obj, "endpoints"), func(endpoint map[string]any) {
		topology := kind.Tree(endpoint, "topology")
		delete(endpoint, "topology")
		if zone, ok := topology[corev1.LabelTopologyZone]; ok {
			endpoint["zone"] = zone
			delete(topology, corev1.LabelTopologyZone)
		}
		if host := topology[corev1.LabelHostname]; host != nil && host == endpoint["nodeName"] {
			delete(topology, corev1.LabelHostname)
		}
		if len(topology) > 0 {
			endpoint["deprecatedTopology"] = topology
		}
	})
}

// event converts to the core group, in which events are stored.
func event(obj map[string]any) {
	for from, to := range map[string]string{
		"regarding": "involvedObject", "note": "message", "reportingController": "reportingComponent",
		"deprecatedSource": "source", "deprecatedCount": "count",
		"deprecatedFirstTimestamp": "firstTimestamp", "deprecatedLastTimestamp": "lastTimestamp",
	} {
		rename(obj, from, to)
	}
}

func ingress(obj map[string]any) {
	spec := kind.Child(obj, "spec")
	rename(spec, "backend", "defaultBackend")
	backend(kind.Tree(spec, "defaultBackend"))
	each(kind.List(spec, "rules"), func(rule map[string]any) {
		each(kind.List(rule, "http", "paths"), func(path map[string]any) {
			kind.SetMissing(path, "pathType", "ImplementationSpecific")
			backend(kind.Tree(path, "backend"))
		})
	})
}

// backend merges the name and port of a Service into one field.
func backend(b map[string]any) {
	name, port := kind.Text(b, "serviceName"), b["servicePort"]
	delete(b, "serviceName")
	delete(b, "servicePort")
	is := map[string]any{}
	switch port := port.(type) {
	case string:
		is["name"] = port
	case nil:
		if name == "" {
			return
		}
	default:
		if is["number"] = port; name == "" && fmt.Sprint(port) == "0" {
			return
		}
	}
	b["service"] = map[string]any{"name": name, "port": is}
}

// assuredShares renames assuredConcurrencyShares to nominalConcurrencyShares.
func assuredShares(obj map[string]any) {
	limited := kind.Tree(obj, "spec", "limited")
	rename(limited, "assuredConcurrencyShares", "nominalConcurrencyShares")
	defaultShares(limited)
}

// zeroShares is the annotation of a level with zero shares.
const zeroShares = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"

// nominalShares sets zero shares if the annotation is present.
func nominalShares(obj map[string]any) {
	annotations := kind.Tree(obj, "metadata", "annotations")
	if _, ok := annotations[zeroShares]; !ok {
		defaultShares(kind.Tree(obj, "spec", "limited"))
		return
	}
	if delete(annotations, zeroShares); len(annotations) == 0 {
		delete(kind.Tree(obj, "metadata"), "annotations")
	}
	if limited := kind.Tree(obj, "spec", "limited"); limited != nil {
		kind.SetMissing(limited, "nominalConcurrencyShares", int64(0))
	}
}

// defaultShares sets missing shares to 30.
func defaultShares(limited map[string]any) {
	if n := limited["nominalConcurrencyShares"]; limited != nil && (n == nil || fmt.Sprint(n) == "0") {
		limited["nominalConcurrencyShares"] = int64(30)
	}
}

// runtimeClass moves the fields of spec to the top level.
func runtimeClass(obj map[string]any) {
	spec := kind.Tree(obj, "spec")
	delete(obj, "spec")
	obj["handler"] = kind.Text(spec, "runtimeHandler")
	for _, name := range []string{"overhead", "scheduling"} {
		kind.Put(obj, name, spec[name])
	}
}

// emptyMatch is a label key in converted selectors. v1beta1 and v1 differ in the meaning of an
// empty selector. No pod has this label.
const emptyMatch = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"

// budget converts the selector: an empty one in v1beta1 matches no pod.
func budget(obj map[string]any) {
	spec := kind.Tree(obj, "spec")
	selector := kind.Tree(spec, "selector")
	if selector == nil {
		return
	}
	labels, expressions := kind.Tree(selector, "matchLabels"), kind.List(selector, "matchExpressions")
	if len(labels) == 0 && len(expressions) == 0 {
		spec["selector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": emptyMatch, "operator": "Exists"}}}
		return
	}
	var rest []any
	each(expressions, func(expression map[string]any) {
		if kind.Text(expression, "key") != emptyMatch {
			rest = append(rest, expression)
		}
	})
	if delete(selector, "matchExpressions"); rest != nil {
		selector["matchExpressions"] = rest
	}
}

// binding changes the apiVersion of subjects to apiGroup.
func binding(obj map[string]any) {
	kind.SetDefault(kind.Child(obj, "roleRef"), "apiGroup", rbacv1.GroupName)
	each(kind.List(obj, "subjects"), func(subject map[string]any) {
		gv, _ := schema.ParseGroupVersion(kind.Text(subject, "apiVersion"))
		delete(subject, "apiVersion")
		group := gv.Group
		switch kind.Text(subject, "kind") {
		case rbacv1.ServiceAccountKind:
			group = ""
		case rbacv1.UserKind, rbacv1.GroupKind:
			group = rbacv1.GroupName
		}
		if group != "" {
			subject["apiGroup"] = group
		}
		if kind.Text(subject, "kind") == rbacv1.UserKind && kind.Text(subject, "name") == "*" {
			subject["kind"], subject["name"] = rbacv1.GroupKind, "system:authenticated"
		}
	})
}
