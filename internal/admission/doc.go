// Package admission implements the admission plugins, which validate and change objects during a
// write.
//
// Each plugin has its Kubernetes name, and is a registry.Mutator, a registry.Validator, or both.
// The package knows the objects that a decision depends on. It does not know how objects are
// stored.
//
// # The wing
//
// A folder is a plugin, or several about one subject. match finds the webhooks and policies whose
// rules and selectors match a write; manifest reads configuration files of plugins. The wing
// imports all wings before it.
//
// Begin with plugins.go, the list of all plugins in their order.
package admission
