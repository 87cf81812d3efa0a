package pod

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

func pods(b *binder, bound *resource.Definition, o Dependencies) *resource.Definition {
	evict := &evictor{budgets: o.Budgets}
	node := &connecter{nodes: o.Nodes, kubelets: o.Kubelets, metrics: o.Streams}
	page := &visit{network: o.Network}
	d := kind.Kind[*corev1.Pod, *corev1.PodList]{
		Definition: resource.Definition{
			Plural: "pods", ShortNames: []string{"po"}, Categories: []string{"all"},
			Namespaced: true, HasGeneration: true, ReturnsDeleted: true,
			Strategy: resource.Strategy{
				AllowUnconditionalUpdate: true,
				Prepare:                  prepare,
				GracePeriod:              gracePeriod,
			},
		},
		Version: &resource.Version{
			ResetFields:   []string{"status"},
			Revert:        resource.Changing(revertStatus),
			RowConditions: rowConditions,
			Subresources:  slices.Concat(answered(b, bound, evict, o.Evictions), connected(node, page), changes(o.Rules)),
		},
		Rules:    o.Rules,
		Default:  defaultProtocols(o.Gates),
		Validate: validate,
		Warn:     warn,
		Columns:  podColumns,
		Cells:    podCells,
		Select: `
			spec.nodeName spec.host=spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork
			status.phase status.podIP status.podIPs=- status.nominatedNodeName
		`,
	}.New()
	evict.pods, node.pods, page.pods = d, d, d
	return d
}

// answered are the subresources that are not stored.
func answered(b *binder, bound *resource.Definition, evict *evictor, evictions *resource.Definition) []resource.Subresource {
	create := []string{"create"}
	return []resource.Subresource{
		{Name: "binding", Verbs: create, Kind: corev1.SchemeGroupVersion.WithKind("Binding"), Definition: bound, Creater: b},
		{Name: "eviction", Verbs: create, Kind: policyv1.SchemeGroupVersion.WithKind("Eviction"), Definition: evictions, Creater: evict},
	}
}

// connected are the subresources that connect to containers.
func connected(node *connecter, page *visit) []resource.Subresource {
	of := corev1.SchemeGroupVersion.WithKind
	return []resource.Subresource{
		talking[corev1.PodAttachOptions]("PodAttachOptions", talk{node, "attach", attachPath, asCommand, gate.TranslateStreamCloseWebsocketRequests}),
		talking[corev1.PodExecOptions]("PodExecOptions", talk{node, "exec", execPath, asCommand, gate.TranslateStreamCloseWebsocketRequests}),
		{
			Name: "log", Verbs: []string{"get"}, Connecter: logReader{node}, Reads: true,
			Options: corev1.PodLogOptions{}, ReadOptions: kind.ReadOptions[corev1.PodLogOptions](of("PodLogOptions")),
		},
		talking[corev1.PodPortForwardOptions]("PodPortForwardOptions", talk{node, "portforward", forwardPath, asTunnel, gate.PortForwardWebsockets}),
		{
			Name: "proxy", Verbs: []string{"create", "delete", "get", "patch", "update"}, Kind: of("PodProxyOptions"), Connecter: page, PathsBelow: true,
			Options: corev1.PodProxyOptions{}, ReadOptions: kind.ReadOptions[corev1.PodProxyOptions](of("PodProxyOptions")),
		},
	}
}

// talking returns a streaming subresource.
func talking[T resource.Options](options string, t talk) resource.Subresource {
	var none T
	of := corev1.SchemeGroupVersion.WithKind(options)
	return resource.Subresource{
		Name: t.name, Verbs: []string{"create", "get"}, Kind: of, Connecter: t, Options: none, ReadOptions: kind.ReadOptions[T](of),
	}
}

// changes are the subresources that change a part of a pod.
func changes(rules func() *rule.Set) []resource.Subresource {
	verbs := []string{"get", "patch", "update"}
	return []resource.Subresource{
		{
			Name: "ephemeralcontainers", Verbs: verbs, Fields: []string{"spec.ephemeralContainers"}, NoTable: true,
			Revert: resource.Changing(revertToEphemeralContainers), Validate: kind.WithPrefix(nil, validating(rules, validateEphemeralContainers)), Warn: silent,
		},
		{
			Name: "resize", Verbs: verbs, Fields: resizable, NoTable: true,
			Revert: revertToResources, Validate: validating(rules, validateResize), Warn: silent,
		},
		{
			Name: "status", Verbs: verbs, Fields: []string{
				"metadata.annotations", "metadata.deletionGracePeriodSeconds", "metadata.finalizers", "metadata.generateName", "metadata.labels", "status",
			},
			Revert: resource.Changing(revertToStatus), Validate: validating(rules, validateStatus), Warn: kind.TypedWarnings(rules, warnStatus),
		},
	}
}

// resizable are the fields that a resize adds to the client's managed fields. As in kube-apiserver,
// the resizePolicy is not among them.
var resizable = []string{"spec.containers.*.resources", "spec.initContainers.*.resources", "spec.resources"}

// validating returns a validation hook for a subresource.
func validating(rules func() *rule.Set, validate func(c *rule.Check, pod, old *corev1.Pod)) func(context.Context, *resource.Change) field.ErrorList {
	return kind.Typed(rules, func(c *rule.Check, pod, old *corev1.Pod) {
		c.Add(kind.MetaFinalizers(c.Object)...)
		validate(c, pod, old)
	})
}

// silent returns no warnings.
func silent(context.Context, *resource.Change) []string { return nil }
