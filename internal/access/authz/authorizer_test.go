package authz

import (
	"context"
	"errors"
	"testing"

	"github.com/anykind/anykind/internal/object/request"
)

// says is an Authorizer with a fixed result.
type says struct {
	decision Decision
	reason   string
	err      error
}

func (s says) Authorize(context.Context, *Attributes) (Decision, string, error) {
	return s.decision, s.reason, s.err
}

// The first decision counts alone. Without a decision, all reasons and errors are joined.
func TestUnion(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name     string
		union    Union
		decision Decision
		reason   string
		err      string
	}{
		{"no authorizer", nil, NoOpinion, "", ""},
		{"allowed", Union{{"a", says{NoOpinion, "x", broken}}, {"b", says{Allow, "y", nil}}, {"c", says{Deny, "z", nil}}}, Allow, "y", ""},
		{"denied", Union{{"a", says{Deny, "x", broken}}, {"b", says{Allow, "y", nil}}}, Deny, "x", "broken"},
		{"no opinions", Union{{"a", says{NoOpinion, "x", broken}}, {"b", says{NoOpinion, "", nil}}, {"c", says{NoOpinion, "y", nil}}}, NoOpinion, "a: x\nc: y", "broken"},
		{"everything is forbidden", Union{{PrivilegedName, Privileged{}}, {"alwaysdeny", AlwaysDeny{}}}, NoOpinion, "alwaysdeny: Everything is forbidden.", ""},
		{"everything is allowed", Union{{"alwaysallow", AlwaysAllow{}}}, Allow, "", ""},
	} {
		decision, reason, err := tt.union.Authorize(t.Context(), &Attributes{User: &request.User{Name: "bob"}})
		message := ""
		if err != nil {
			message = err.Error()
		}
		if decision != tt.decision || reason != tt.reason || message != tt.err {
			t.Errorf("%s: %v %q %q", tt.name, decision, reason, message)
		}
	}
}

func TestPrivileged(t *testing.T) {
	for _, tt := range []struct {
		user *request.User
		want Decision
	}{
		{nil, NoOpinion},
		{&request.User{Name: request.Masters}, NoOpinion},
		{&request.User{Groups: []string{request.Authenticated}}, NoOpinion},
		{&request.User{Groups: []string{request.Authenticated, request.Masters}}, Allow},
	} {
		if got, _, _ := (Privileged{}).Authorize(t.Context(), &Attributes{User: tt.user}); got != tt.want {
			t.Errorf("%+v: %v", tt.user, got)
		}
	}
}

// Without an authorizer, Current denies.
func TestCurrent(t *testing.T) {
	var c Current
	if got, _, _ := c.Authorize(t.Context(), &Attributes{}); got != Deny {
		t.Errorf("before: %v", got)
	}
	c.Set(AlwaysAllow{})
	if got, _, _ := c.Authorize(t.Context(), &Attributes{}); got != Allow {
		t.Errorf("after: %v", got)
	}
}

// Selectors default to those of the query.
func TestSelect(t *testing.T) {
	a := &Attributes{Info: request.Info{FieldSelector: "spec.nodeName=n", LabelSelector: "a in (b, c),d"}}
	if s := a.Select(); len(s.Fields) != 1 || s.Fields[0].Value != "n" || len(s.Labels) != 2 || s.FieldsErr != nil || s.LabelsErr != nil {
		t.Errorf("%+v", s)
	}
	a = &Attributes{Info: request.Info{FieldSelector: "<", LabelSelector: "=="}}
	if s := a.Select(); s.Fields != nil || s.Labels != nil || s.FieldsErr == nil || s.LabelsErr == nil {
		t.Errorf("%+v", s)
	}
	a.Selectors = &Selectors{}
	if a.Select() != a.Selectors {
		t.Error("others are not those that were given")
	}
}
