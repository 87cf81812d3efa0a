package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/schema/celpolicy"
)

// validateMatch validates match constraints.
func validateMatch(c *rule.Check, match *admissionv1.MatchResources) {
	switch at := c.At("matchConstraints"); {
	case match == nil:
		at.Required("")
	case len(match.ResourceRules) == 0:
		at.At("resourceRules").Required("")
	}
}

// validateMutatingOperations rejects rules with DELETE: a deletion cannot be mutated.
func validateMutatingOperations(c *rule.Check, match *admissionv1.MatchResources) {
	if match == nil {
		return
	}
	may := slices.DeleteFunc(slices.Clone(operations), func(op admissionv1.OperationType) bool { return op == admissionv1.Delete })
	for _, r := range match.ResourceRules {
		for _, op := range r.Operations {
			if !slices.Contains(may, op) {
				rule.NotSupported(c.At("resourceRules", "operations"), op, may...)
			}
		}
	}
}

func validateMutatingPolicy(c *rule.Check, obj, old *admissionv1.MutatingAdmissionPolicy) {
	spec, at := &obj.Spec, c.At("spec")
	c.Walk(spec, "spec")
	validateName(c, obj)
	validateMatch(at, spec.MatchConstraints)
	validateMutatingOperations(at.At("matchConstraints"), spec.MatchConstraints)
	say := expressions{compiler: celpolicy.WithVariables(), params: spec.ParamKind != nil, compatible: c.Gates.Compatible()}
	same := false
	if old != nil {
		same = sameConditions(spec.ParamKind, old.Spec.ParamKind, spec.MatchConditions, old.Spec.MatchConditions)
		say.conditions = textsOf(old.Spec.MatchConditions, condition)
		say.patches = textsOf(old.Spec.Mutations, func(m admissionv1.Mutation) string {
			if m.ApplyConfiguration == nil {
				return ""
			}
			return m.ApplyConfiguration.Expression
		})
	}
	if !same {
		validateMatchConditions(at.At("matchConditions"), spec.MatchConditions, say)
	}
	validateVariables(at.At("variables"), spec.Variables, say)
	if len(spec.Mutations) == 0 {
		at.At("mutations").Required("mutations must contain at least one item")
	}
	for i, m := range spec.Mutations {
		validateMutation(at.At("mutations", i), m, say)
	}
}

func validateMutation(c *rule.Check, m admissionv1.Mutation, say expressions) {
	apply, patch := c.At("applyConfiguration"), c.At("jsonPatch")
	switch m.PatchType {
	case admissionv1.PatchTypeJSONPatch:
		if m.JSONPatch == nil {
			patch.Required("must be specified when patchType is JSONPatch")
		} else {
			validatePatch(patch.At("expression"), m.JSONPatch.Expression, say, celpolicy.JSONPatchType)
		}
		if m.ApplyConfiguration != nil {
			apply.Invalid("{applyConfiguration}", "must not be specified when patchType is JSONPatch")
		}
	case admissionv1.PatchTypeApplyConfiguration:
		if m.ApplyConfiguration == nil {
			apply.Required("must be specified when patchType is ApplyConfiguration")
		} else {
			validatePatch(apply.At("expression"), m.ApplyConfiguration.Expression, say, celpolicy.ObjectType)
		}
		if m.JSONPatch != nil {
			patch.Invalid("{jsonPatch}", "must not be specified when patchType is ApplyConfiguration")
		}
	}
}

func validateValidatingPolicy(c *rule.Check, obj, old *admissionv1.ValidatingAdmissionPolicy) {
	spec, at := &obj.Spec, c.At("spec")
	c.Walk(spec, "spec")
	validateName(c, obj)
	validateMatch(at, spec.MatchConstraints)
	say := expressions{compiler: celpolicy.Plain(), params: spec.ParamKind != nil, compatible: c.Gates.Compatible()}
	if len(spec.Variables) > 0 {
		say.compiler = celpolicy.WithVariables()
	}
	same := false
	if old != nil {
		same = sameConditions(spec.ParamKind, old.Spec.ParamKind, spec.MatchConditions, old.Spec.MatchConditions)
		say.conditions = textsOf(old.Spec.MatchConditions, condition)
		say.validations = textsOf(old.Spec.Validations, func(v admissionv1.Validation) string { return v.Expression })
		say.messages = textsOf(old.Spec.Validations, func(v admissionv1.Validation) string { return v.MessageExpression })
		say.annotations = textsOf(old.Spec.AuditAnnotations, func(a admissionv1.AuditAnnotation) string { return a.ValueExpression })
	}
	if !same {
		validateMatchConditions(at.At("matchConditions"), spec.MatchConditions, say)
	}
	validateVariables(at.At("variables"), spec.Variables, say)
	if len(spec.Validations)+len(spec.AuditAnnotations) == 0 {
		at.At("validations").Required("validations or auditAnnotations must contain at least one item")
		at.At("auditAnnotations").Required("validations or auditAnnotations must contain at least one item")
	}
	for i, v := range spec.Validations {
		validateValidation(at.At("validations", i), v, say)
	}
	validateAnnotations(at.At("auditAnnotations"), obj, say)
}

// lineBreak matches a line break in an expression.
var lineBreak = rule.Pattern(`[\n\r]`)

var reasons = []metav1.StatusReason{metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge}

func validateValidation(c *rule.Check, v admissionv1.Validation, say expressions) {
	const empty = "must be non-empty if specified"
	if blank(v.Expression) {
		c.At("expression").Required("expression is not specified")
	} else {
		say.compile(c.At("expression"), v.Expression, say.ofValidation(v.Expression))
	}
	switch at := c.At("messageExpression"); {
	case v.MessageExpression == "":
	case blank(v.MessageExpression):
		at.Invalid(v.MessageExpression, empty)
	default:
		say.compile(at, v.MessageExpression, say.ofMessage(v.MessageExpression))
	}
	switch at := c.At("message"); {
	case v.Message == "":
	case blank(v.Message):
		at.Invalid(v.Message, empty)
	case lineBreak().MatchString(strings.TrimSpace(v.Message)):
		at.Invalid(v.Message, "must not contain line breaks")
	}
	if v.Reason != nil && !slices.Contains(reasons, *v.Reason) {
		rule.NotSupported(c.At("reason"), *v.Reason, reasons...)
	}
}

const (
	// mostAnnotations limits the audit annotations of a policy.
	mostAnnotations = 20
	// longestAnnotation limits the bytes of the expression of an audit annotation.
	longestAnnotation = 5 << 10
)

func validateAnnotations(c *rule.Check, obj *admissionv1.ValidatingAdmissionPolicy, say expressions) {
	all := obj.Spec.AuditAnnotations
	if len(all) > mostAnnotations {
		c.Invalid(all, fmt.Sprintf("must not have more than %d auditAnnotations", mostAnnotations))
	}
	keys := sets.New[string]()
	for i, a := range all {
		key, value := c.At(i, "key"), c.At(i, "valueExpression")
		if obj.Name == "" {
			key.Invalid(a.Key, "requires metadata.name be non-empty")
		} else {
			whole := obj.Name + "/" + a.Key
			key.Invalids(whole, validation.IsQualifiedName(whole))
		}
		switch text := strings.TrimSpace(a.ValueExpression); {
		case text == "":
			value.Required("valueExpression is not specified")
		case len(text) > longestAnnotation:
			value.Required(fmt.Sprintf("must not exceed %d bytes in length", longestAnnotation))
		default:
			say.compile(value, a.ValueExpression, say.ofAnnotation(text, a.ValueExpression))
		}
		if keys.Has(a.Key) {
			key.Duplicate(a.Key)
		}
		keys.Insert(a.Key)
	}
}

func validatePolicyStatus(c *rule.Check, obj, _ *admissionv1.ValidatingAdmissionPolicy) {
	if types := obj.Status.TypeChecking; types != nil {
		for i, w := range types.ExpressionWarnings {
			at := c.At("status", "typeChecking", "expressionWarnings", i)
			if w.Warning == "" {
				at.At("warning").Required("")
			}
			ref := strings.TrimSpace(w.FieldRef)
			if at = at.At("fieldRef"); ref == "" {
				at.Required("")
			} else if err := jsonpath.New("field").Parse("{" + ref + "}"); err != nil {
				at.Invalid(ref, fmt.Sprintf("invalid JSONPath: %v", err))
			}
		}
	}
	c.At("status", "conditions").Conditions(obj.Status.Conditions)
}

func validateMutatingBinding(c *rule.Check, obj, _ *admissionv1.MutatingAdmissionPolicyBinding) {
	at := c.At("spec")
	c.Walk(&obj.Spec, "spec")
	validateName(c, obj)
	validatePolicyName(at.At("policyName"), obj.Spec.PolicyName)
	validateMutatingOperations(at.At("matchResources"), obj.Spec.MatchResources)
}

func validateValidatingBinding(c *rule.Check, obj, _ *admissionv1.ValidatingAdmissionPolicyBinding) {
	at := c.At("spec")
	c.Walk(&obj.Spec, "spec")
	validateName(c, obj)
	validatePolicyName(at.At("policyName"), obj.Spec.PolicyName)
	actions, known := obj.Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Audit, admissionv1.Deny, admissionv1.Warn}
	at = at.At("validationActions")
	for i, action := range actions {
		if !slices.Contains(known, action) {
			rule.NotSupported(at.At(i), action, known...)
		}
		if slices.Contains(actions[:i], action) {
			at.At(i).Duplicate(action)
		}
	}
	if slices.Contains(actions, admissionv1.Deny) && slices.Contains(actions, admissionv1.Warn) {
		at.Invalid(actions, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)")
	}
	if len(actions) == 0 {
		at.Required(rule.Untagged(c.Gates, "at least one validation action is required"))
	}
}

func validatePolicyName(c *rule.Check, name string) {
	if name == "" {
		c.Required("")
		return
	}
	c.Invalids(name, apivalidation.NameIsDNSSubdomain(name, false))
}

// sameConditions reports whether match conditions, and everything their validity depends on, are
// unchanged.
func sameConditions(kind, oldKind *admissionv1.ParamKind, all, old []admissionv1.MatchCondition) bool {
	return equality.Semantic.DeepEqual(kind, oldKind) && equality.Semantic.DeepEqual(all, old)
}

func validateMatchConditions(c *rule.Check, all []admissionv1.MatchCondition, say expressions) {
	const most = 64
	if len(all) > most {
		c.Add(field.TooMany(c.Path(), len(all), most))
	}
	names := sets.New[string]()
	for i, m := range all {
		text, name := c.At(i, "expression"), c.At(i, "name")
		if blank(m.Expression) {
			text.Required("")
		} else {
			say.condition(text, m.Expression)
		}
		if m.Name == "" {
			name.Required("")
			continue
		}
		name.Invalids(m.Name, validation.IsQualifiedName(m.Name))
		if names.Has(m.Name) {
			name.Duplicate(m.Name)
		}
		names.Insert(m.Name)
	}
}
