package app

import (
	"github.com/anykind/anykind/internal/admission"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/resource"
)

// Admission says which admission plugins are asked about a write.
type Admission struct {
	// Enable and Disable name plugins, as Kubernetes does, that are on or off whatever the default.
	Enable, Disable []string
	// ConfigFile has an AdmissionConfiguration, with what plugins are told; empty for none.
	ConfigFile string
}

// plugins are the admission plugins there are. Before there is a store, they have names only.
func (w *wired) plugins(core *resource.Set) []admission.Plugin {
	return []admission.Plugin{
		{Name: "NamespaceLifecycle", Make: func([]byte) (any, error) {
			return &admission.NamespaceLifecycle{Cache: w.cache, Prefix: core.Lookup("", "namespaces").StoragePrefix}, nil
		}},
		{Name: "MutatingAdmissionPolicy", Make: w.mutatingPolicies(core)},
		{Name: "ValidatingAdmissionPolicy", Make: w.validatingPolicies(core)},
		{Name: "MutatingAdmissionWebhook", Make: w.mutatingWebhooks(core)},
		{Name: "ValidatingAdmissionWebhook", Make: w.validatingWebhooks(core)},
	}
}

// selectPlugins returns the names of the plugins that are on, with how they are made.
func (w *wired) selectPlugins(o Options, core *resource.Set) ([]admission.Plugin, error) {
	return admission.Select(w.plugins(core), o.Admission.Enable, o.Admission.Disable)
}

// admit makes the plugins that are on.
func (w *wired) admit(o Options, core *resource.Set, configs map[string][]byte) (registry.Plugins, error) {
	on, err := w.selectPlugins(o, core)
	if err != nil {
		return registry.Plugins{}, err
	}
	return admission.Make(on, configs)
}
