// Package admissionregistration has the built-in kinds of admissionregistration.k8s.io: webhook
// configurations and admission policies.
//
// It validates them. internal/admission calls the webhooks and evaluates the policies.
package admissionregistration

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{
		mutatingPolicies(), mutatingPolicyBindings(), mutatingWebhooks(),
		validatingPolicies(), validatingPolicyBindings(), validatingWebhooks(),
	}
}

// definition returns the common part of a kind of the group.
func definition(plural string) resource.Definition {
	return resource.Definition{
		Group: admissionv1.GroupName, Plural: plural, Categories: []string{"api-extensions"}, HasGeneration: true,
	}
}

// beta is v1beta1 of the mutating policies and their bindings, with the types of v1.
func beta() kind.Version {
	return kind.Renamed("v1beta1", "k8s.io/api/admissionregistration/v1beta1", kind.Life{Introduced: 34, Deprecated: 37, Removed: 40, Replaced: true}, aliases()...)
}

// alpha is v1alpha1 of the same kinds.
func alpha() kind.Version {
	return kind.Renamed("v1alpha1", "k8s.io/api/admissionregistration/v1alpha1", kind.Life{Introduced: 32, Deprecated: 35, Removed: 38}, aliases()...)
}

// aliases are the types of v1 that the packages of the other versions have as aliases.
func aliases() []string {
	return []string{"OperationType", "ReinvocationPolicyType", "Rule", "RuleWithOperations", "ScopeType"}
}

// webhooks returns the common part of a kind of webhooks.
func webhooks(plural string) resource.Definition {
	d := definition(plural)
	d.CountsEmpty = true
	return d
}

func mutatingWebhooks() *resource.Definition {
	return kind.Kind[*admissionv1.MutatingWebhookConfiguration, *admissionv1.MutatingWebhookConfigurationList]{
		Definition:    webhooks("mutatingwebhookconfigurations"),
		AnyFinalizers: true, Rules: rules, Validate: validateMutatingWebhooks, Warn: warnOfMutatingWebhooks,
		Columns: webhookColumns,
		Cells:   kind.Cells{"webhooks": kind.Count("webhooks")},
	}.New()
}

func validatingWebhooks() *resource.Definition {
	return kind.Kind[*admissionv1.ValidatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfigurationList]{
		Definition:    webhooks("validatingwebhookconfigurations"),
		AnyFinalizers: true, Rules: rules, Validate: validateValidatingWebhooks, Warn: warnOfValidatingWebhooks,
		Columns: webhookColumns,
		Cells:   kind.Cells{"webhooks": kind.Count("webhooks")},
	}.New()
}

const webhookColumns = `
	Webhooks  integer  webhooks  "Webhooks indicates the number of webhooks registered in this configuration"
	Age
`

func mutatingPolicies() *resource.Definition {
	return kind.Kind[*admissionv1.MutatingAdmissionPolicy, *admissionv1.MutatingAdmissionPolicyList]{
		Definition:    definition("mutatingadmissionpolicies"),
		AnyFinalizers: true, Rules: rules, Validate: validateMutatingPolicy, Warn: warnOfName[admissionv1.MutatingAdmissionPolicy],
		Columns: `
			Mutations  integer  mutations  "Mutation indicates the number of mutations rules defined in this configuration"
			ParamKind  string   paramKind  "ParamKind specifies the kind of resources used to parameterize this policy"
			Age
		`,
		Cells: kind.Cells{"mutations": kind.Count("spec", "mutations"), "paramKind": paramKind},
	}.New(beta(), alpha())
}

func validatingPolicies() *resource.Definition {
	return kind.Kind[*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyList]{
		Definition:    definition("validatingadmissionpolicies"),
		AnyFinalizers: true, Rules: rules, Validate: validateValidatingPolicy, Warn: warnOfName[admissionv1.ValidatingAdmissionPolicy],
		ValidateStatus: validatePolicyStatus, WarnOfStatus: warnOfName[admissionv1.ValidatingAdmissionPolicy],
		StatusKeeps: "spec metadata",
		Columns: `
			Validations  integer  validations  "Validations indicates the number of validation rules defined in this configuration"
			ParamKind    string   paramKind    "ParamKind specifies the kind of resources used to parameterize this policy"
			Age
		`,
		Cells: kind.Cells{"validations": kind.Count("spec", "validations"), "paramKind": paramKind},
	}.New()
}

func mutatingPolicyBindings() *resource.Definition {
	return kind.Kind[*admissionv1.MutatingAdmissionPolicyBinding, *admissionv1.MutatingAdmissionPolicyBindingList]{
		Definition:    definition("mutatingadmissionpolicybindings"),
		AnyFinalizers: true, Rules: rules, Validate: validateMutatingBinding, Warn: warnOfName[admissionv1.MutatingAdmissionPolicyBinding],
		Columns: bindingColumns,
		Cells:   kind.Cells{"param": paramRef},
	}.New(beta(), alpha().WhenDecoded(func(obj map[string]any) {
		if ref := kind.Tree(obj, "spec", "paramRef"); ref != nil {
			kind.SetMissing(ref, "parameterNotFoundAction", string(admissionv1.DenyAction))
		}
	}))
}

func validatingPolicyBindings() *resource.Definition {
	return kind.Kind[*admissionv1.ValidatingAdmissionPolicyBinding, *admissionv1.ValidatingAdmissionPolicyBindingList]{
		Definition:    definition("validatingadmissionpolicybindings"),
		AnyFinalizers: true, Rules: rules, Validate: validateValidatingBinding, Warn: warnOfName[admissionv1.ValidatingAdmissionPolicyBinding],
		Columns: bindingColumns,
		Cells:   kind.Cells{"param": paramRef},
	}.New()
}

const bindingColumns = `
	PolicyName  string  .spec.policyName  "PolicyName indicates the policy definition which the policy binding binded to"
	ParamRef    string  param             "ParamRef indicates the param resource which sets the configuration param"
	Age
`

// paramKind returns the cell with the kind of a policy's parameters.
func paramKind(obj map[string]any) any {
	of := kind.Tree(obj, "spec", "paramKind")
	if of == nil {
		return "<unset>"
	}
	return kind.Text(of, "apiVersion") + "/" + kind.Text(of, "kind")
}

// paramRef returns the cell with the parameter reference of a binding.
func paramRef(obj map[string]any) any {
	ref := kind.Tree(obj, "spec", "paramRef")
	name, namespace := kind.Text(ref, "name"), kind.Text(ref, "namespace")
	switch {
	case name != "" && namespace != "":
		return namespace + "/" + name
	case name != "":
		return "*/" + name
	case kind.Tree(ref, "selector") != nil:
		return kind.ValueOf[metav1.LabelSelector](kind.Tree(ref, "selector")).String()
	}
	return "<unset>"
}
