package oidc

import (
	"context"
	"encoding/json"
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/cel/lazy"

	"github.com/anykind/anykind/internal/object/request"
)

// claims are the undecoded claims of a token.
type claims map[string]json.RawMessage

func (c claims) has(name string) bool { _, ok := c[name]; return ok }

func (c claims) get(name string, into any) error {
	value, ok := c[name]
	if !ok {
		return fmt.Errorf("claim not present")
	}
	return json.Unmarshal(value, into)
}

// userOf returns the user of claims, if all validation rules pass.
func (i *issuer) userOf(ctx context.Context, c claims) (u *request.User, err error) {
	value := claimsValue(c)
	u = &request.User{}
	if u.Name, err = i.username(ctx, c, value); err != nil {
		return nil, err
	}
	if u.Groups, err = i.groups(ctx, c, value); err != nil {
		return nil, err
	}
	if u.UID, err = i.uid(ctx, c, value); err != nil {
		return nil, err
	}
	if u.Extra, err = i.extra(ctx, c, value); err != nil {
		return nil, err
	}
	if err := i.checkRequired(c); err != nil {
		return nil, err
	}
	if rules := i.mapper.ClaimValidationRules; rules != nil {
		results, err := rules.EvalClaimMappings(ctx, value)
		if err == nil {
			err = allTrue(results)
		}
		if err != nil {
			return nil, fmt.Errorf("oidc: error evaluating claim validation expression: %w", err)
		}
	}
	if rules := i.mapper.UserValidationRules; rules != nil {
		results, err := rules.EvalUser(ctx, userValue(u))
		if err == nil {
			err = allTrue(results)
		}
		if err != nil {
			return nil, fmt.Errorf("oidc: error evaluating user info validation rule: %w", err)
		}
	}
	return u, nil
}

func (i *issuer) username(ctx context.Context, c claims, value *lazy.MapValue) (string, error) {
	if i.mapper.Username != nil {
		name, err := text(ctx, i.mapper.Username, value, "username")
		if err == nil && name == "" {
			err = fmt.Errorf("oidc: empty username via CEL expression is not allowed")
		}
		return name, err
	}
	mapping := i.authenticator.ClaimMappings.Username
	var name string
	if err := c.get(mapping.Claim, &name); err != nil {
		return "", fmt.Errorf("oidc: parse username claims %q: %v", mapping.Claim, err)
	}
	if mapping.Claim == "email" && c.has("email_verified") {
		var verified bool
		if err := c.get("email_verified", &verified); err != nil {
			return "", fmt.Errorf("oidc: parse 'email_verified' claim: %v", err)
		}
		if !verified {
			return "", fmt.Errorf("oidc: email not verified")
		}
	}
	return prefix(mapping.Prefix) + name, nil
}

func prefix(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func (i *issuer) groups(ctx context.Context, c claims, value *lazy.MapValue) ([]string, error) {
	mapping := i.authenticator.ClaimMappings.Groups
	if mapping.Claim != "" && c.has(mapping.Claim) {
		var groups oneOrMany
		if err := c.get(mapping.Claim, &groups); err != nil {
			return nil, fmt.Errorf("oidc: parse groups claim %q: %w", mapping.Claim, err)
		}
		for n := range groups {
			groups[n] = prefix(mapping.Prefix) + groups[n]
		}
		return groups, nil
	}
	if i.mapper.Groups == nil {
		return nil, nil
	}
	result, err := i.mapper.Groups.EvalClaimMapping(ctx, value)
	if err != nil {
		return nil, fmt.Errorf("oidc: error evaluating group claim expression: %w", err)
	}
	groups, err := texts(result.EvalResult)
	if err != nil {
		return nil, fmt.Errorf("oidc: error evaluating group claim expression: %w", err)
	}
	return groups, nil
}

func (i *issuer) uid(ctx context.Context, c claims, value *lazy.MapValue) (string, error) {
	if claim := i.authenticator.ClaimMappings.UID.Claim; claim != "" {
		var uid string
		if err := c.get(claim, &uid); err != nil {
			return "", fmt.Errorf("oidc: parse uid claim %q: %w", claim, err)
		}
		return uid, nil
	}
	if i.mapper.UID == nil {
		return "", nil
	}
	return text(ctx, i.mapper.UID, value, "uid")
}

// text evaluates an expression that must return a string.
func text(ctx context.Context, mapper authenticationcel.ClaimsMapper, value *lazy.MapValue, what string) (string, error) {
	result, err := mapper.EvalClaimMapping(ctx, value)
	if err != nil {
		return "", fmt.Errorf("oidc: error evaluating %s claim expression: %w", what, err)
	}
	s, ok := result.EvalResult.Value().(string)
	if !ok || result.EvalResult.Type() != celgo.StringType {
		return "", fmt.Errorf("oidc: error evaluating %s claim expression: %s claim expression must return a string", what, what)
	}
	return s, nil
}

func (i *issuer) extra(ctx context.Context, c claims, value *lazy.MapValue) (map[string][]string, error) {
	extra := map[string][]string{}
	var id string
	if err := c.get("jti", &id); err == nil && id != "" {
		extra[request.CredentialID] = []string{"JTI=" + id}
	}
	if i.mapper.Extra != nil {
		results, err := i.mapper.Extra.EvalClaimMappings(ctx, value)
		if err != nil {
			return nil, err
		}
		for _, result := range results {
			mapping := result.ExpressionAccessor.(*authenticationcel.ExtraMappingExpression)
			values, err := texts(result.EvalResult)
			if err != nil {
				return nil, fmt.Errorf("oidc: error evaluating extra claim expression: %s: %w", mapping.Expression, err)
			}
			if len(values) > 0 {
				extra[mapping.Key] = values
			}
		}
	}
	if len(extra) == 0 {
		return nil, nil
	}
	return extra, nil
}

// checkRequired checks the required claims.
func (i *issuer) checkRequired(c claims) error {
	for name, want := range i.required {
		if !c.has(name) {
			return fmt.Errorf("oidc: required claim %s not present in ID token", name)
		}
		var got string
		if err := c.get(name, &got); err != nil {
			return fmt.Errorf("oidc: parse claim %s: %w", name, err)
		}
		if got != want {
			return fmt.Errorf("oidc: required claim %s value does not match. Got = %s, want = %s", name, got, want)
		}
	}
	return nil
}

// allTrue returns the error of the first rule that is false.
func allTrue(results []authenticationcel.EvaluationResult) error {
	for _, result := range results {
		holds, ok := result.EvalResult.Value().(bool)
		if !ok || result.EvalResult.Type() != celgo.BoolType {
			return fmt.Errorf("validation expression must return a boolean")
		}
		if !holds {
			return fmt.Errorf("validation expression '%s' failed: %s", result.ExpressionAccessor.GetExpression(), messageOf(result.ExpressionAccessor))
		}
	}
	return nil
}

func messageOf(rule authenticationcel.ExpressionAccessor) string {
	switch rule := rule.(type) {
	case *authenticationcel.ClaimValidationCondition:
		return rule.Message
	case *authenticationcel.UserValidationCondition:
		return rule.Message
	default:
		return ""
	}
}

// oneOrMany is a string or a list of strings in JSON.
type oneOrMany []string

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMany) UnmarshalJSON(data []byte) error {
	var many []string
	if err := json.Unmarshal(data, &many); err == nil {
		*o = many
		return nil
	}
	var one string
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	*o = []string{one}
	return nil
}

// texts returns the strings of an expression's value: a string, or a list of strings. Empty strings
// are dropped; null is an empty list.
func texts(value ref.Val) ([]string, error) {
	errNoText := fmt.Errorf("expression must return a string or a list of strings")
	var out []string
	add := func(v any) error {
		s, ok := v.(string)
		if !ok {
			return errNoText
		}
		if s != "" {
			out = append(out, s)
		}
		return nil
	}
	switch value.Type().TypeName() {
	case celgo.NullType.TypeName():
		return nil, nil
	case celgo.StringType.TypeName():
		return out, add(value.Value())
	case celgo.ListType(nil).TypeName():
		switch list := value.Value().(type) {
		case []any:
			for _, v := range list {
				if err := add(v); err != nil {
					return nil, err
				}
			}
			return out, nil
		case []ref.Val:
			for _, v := range list {
				if err := add(v.Value()); err != nil {
					return nil, err
				}
			}
			return out, nil
		}
	}
	return nil, errNoText
}
