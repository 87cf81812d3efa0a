package app

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/anykind/anykind/internal/admission"
	"github.com/anykind/anykind/internal/admission/conversion"
	"github.com/anykind/anykind/internal/admission/limitranger"
	"github.com/anykind/anykind/internal/admission/podsecurity"
	"github.com/anykind/anykind/internal/admission/priority"
	"github.com/anykind/anykind/internal/admission/quota"
	"github.com/anykind/anykind/internal/admission/serviceaccount"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

// Admission configures the admission plugins.
type Admission struct {
	// Enable and Disable override the defaults; plugins have the names of Kubernetes.
	Enable, Disable []string
	// ConfigFile is an AdmissionConfiguration with the configuration of plugins; empty for none.
	ConfigFile string
	// NotReadySeconds and UnreachableSeconds are the default toleration of pods for nodes that are
	// not ready or unreachable; nil is five minutes.
	NotReadySeconds, UnreachableSeconds *int64
}

// withoutWebhooks disables the plugins that call webhooks.
func (a Admission) withoutWebhooks() Admission {
	names := []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"}
	a.Disable = append(slices.Clone(a.Disable), names...)
	a.Enable = slices.DeleteFunc(slices.Clone(a.Enable), func(name string) bool { return slices.Contains(a.Disable, name) })
	return a
}

// plugins returns all admission plugins. Before the store is open, only their names can be used.
func (w *wired) plugins(o Options, core *resource.Set) []admission.Plugin {
	namespaces := func() admission.Namespaces {
		n := admission.Namespaces{Cache: w.cache, Prefix: core.Lookup("", "namespaces").StoragePrefix}
		if w.mirror != nil {
			n.Ask = w.mirror.Ask
		}
		return n
	}
	return append(w.pluginsOfKinds(o, core), []admission.Plugin{
		{Name: "NamespaceAutoProvision", Make: func([]byte) (any, error) {
			create := func(ctx context.Context, name string) error {
				return w.make(ctx, core.Lookup("", "namespaces"), object.Tree{"metadata": object.Tree{"name": name}})
			}
			return &admission.NamespaceAutoProvision{Namespaces: namespaces(), Create: create}, nil
		}},
		{Name: "NamespaceExists", Make: func([]byte) (any, error) { return &admission.NamespaceExists{Namespaces: namespaces()}, nil }},
		{Name: "NamespaceLifecycle", Make: func([]byte) (any, error) { return &admission.NamespaceLifecycle{Namespaces: namespaces()}, nil }},
		{Name: limitranger.Name, Make: func([]byte) (any, error) {
			return &limitranger.Plugin{Limits: stored.List[corev1.LimitRange](w.cache, core, corev1.Resource("limitranges"))}, nil
		}},
		{Name: serviceaccount.Name, Make: func([]byte) (any, error) {
			return &serviceaccount.Plugin{Accounts: stored.List[corev1.ServiceAccount](w.cache, core, corev1.Resource("serviceaccounts"))}, nil
		}},
		{Name: podsecurity.Name, Make: func(config []byte) (any, error) {
			return podsecurity.New(config, w.cache, core, w.standards, o.Gates.Emulated())
		}},
		{Name: priority.Name, Make: func([]byte) (any, error) {
			return &priority.Plugin{Classes: stored.List[schedulingv1.PriorityClass](w.cache, core, schedulingv1.Resource("priorityclasses"))}, nil
		}},
		{Name: "MutatingAdmissionPolicy", Make: w.mutatingPolicies(o.Gates, core)},
		{Name: "ValidatingAdmissionPolicy", Make: w.validatingPolicies(o.Gates, core)},
		{Name: "MutatingAdmissionWebhook", Make: w.mutatingWebhooks(o.Gates, core)},
		{Name: "ValidatingAdmissionWebhook", Make: w.validatingWebhooks(o.Gates, core)},
		{Name: "ResourceQuota", Make: func(config []byte) (any, error) {
			return quota.New(quota.Options{Cache: w.cache, Core: core, Evaluators: w.usage, Turns: &w.charging, Config: config})
		}},
	}...)
}

// selectPlugins returns the enabled plugins.
func (w *wired) selectPlugins(o Options, core *resource.Set) ([]admission.Plugin, error) {
	return admission.Select(w.plugins(o, core), o.Admission.Enable, o.Admission.Disable)
}

// admit creates the enabled plugins.
func (w *wired) admit(o Options, core *resource.Set, configs map[string][]byte) (registry.Plugins, error) {
	on, err := w.selectPlugins(o, core)
	if err != nil {
		return registry.Plugins{}, err
	}
	plugins, err := admission.Make(on, configs, w.plugged)
	plugins.Add(&conversion.Validator{Cache: w.cache})
	o.opened.protect(&plugins, o.Open)
	return plugins, err
}
