package fault

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// A Spec describes a fault in JSON. In each list, "*" selects everything. An empty list does, too, except
// that of subresources.
type Spec struct {
	// Users are names of users.
	Users []string `json:"users,omitempty"`
	// UserAgents are prefixes of the header User-Agent.
	UserAgents []string `json:"userAgents,omitempty"`
	// Verbs are verbs of Kubernetes. "read" stands for get, list and watch, and "write" for all others.
	Verbs []string `json:"verbs,omitempty"`
	// Groups are API groups; "" is the core group.
	Groups []string `json:"groups,omitempty"`
	// Resources are plural.
	Resources []string `json:"resources,omitempty"`
	// Subresources are names such as status; "" is the object itself. An empty list selects requests
	// without a subresource.
	Subresources []string `json:"subresources,omitempty"`
	// Namespaces are names; "" selects requests without a namespace.
	Namespaces []string `json:"namespaces,omitempty"`
	// Names are names of objects; "" selects creates and requests for collections.
	Names []string `json:"names,omitempty"`

	// Skip is the number of first requests without the fault.
	Skip int `json:"skip,omitempty"`
	// Times is the number of requests with the fault. Zero is one; Always is all.
	Times int `json:"times,omitempty"`
	// Effect is the fault.
	Effect EffectSpec `json:"effect"`
}

// An EffectSpec describes an Effect in JSON.
type EffectSpec struct {
	// Type is one of the types below.
	Type string `json:"type"`
	// Duration is the time of a delay, such as 2s.
	Duration string `json:"duration,omitempty"`
	// Code, Reason, Message and RetryAfterSeconds are those of the Status. The code is required; the
	// defaults of reason and message depend on it.
	Code              int                 `json:"code,omitempty"`
	Reason            metav1.StatusReason `json:"reason,omitempty"`
	Message           string              `json:"message,omitempty"`
	RetryAfterSeconds int                 `json:"retryAfterSeconds,omitempty"`
	// ResourceVersion is the state of a stale view.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// Types of effects.
const (
	typeStatus     = "status"
	typeDelay      = "delay"
	typeHangUp     = "hangUp"
	typeLoseAnswer = "loseAnswer"
	typeStaleView  = "staleView"
	typeHoldEvents = "holdEvents"
)

// everything selects all values of a list.
const everything = "*"

// verbs are the values of Spec.Verbs.
var verbs = []string{everything, "create", "delete", "deletecollection", "get", "list", "patch", "read", "update", "watch", "write"}

// resolve validates a Spec, and returns its Fault.
func (s *Spec) resolve() (Fault, error) {
	var errs field.ErrorList
	for i, v := range s.Verbs {
		if !slices.Contains(verbs, v) {
			errs = append(errs, field.NotSupported(field.NewPath("verbs").Index(i), v, verbs))
		}
	}
	if s.Skip < 0 {
		errs = append(errs, field.Invalid(field.NewPath("skip"), s.Skip, "must not be negative"))
	}
	if s.Times < Always {
		errs = append(errs, field.Invalid(field.NewPath("times"), s.Times, "must be a number of requests, or -1 for all"))
	}
	effect, wrong := s.Effect.resolve(field.NewPath("effect"))
	if errs = append(errs, wrong...); len(errs) > 0 {
		return Fault{}, status.Invalid(schema.GroupKind{Group: group, Kind: "Fault"}, "", errs)
	}
	return Fault{Match: s.match, Skip: s.Skip, Times: s.Times, Effect: effect}, nil
}

// resolve validates an EffectSpec, and returns its Effect.
func (e *EffectSpec) resolve(at *field.Path) (effect Effect, errs field.ErrorList) {
	allowed := map[string]bool{}
	switch e.Type {
	case typeStatus:
		allowed["code"], allowed["reason"], allowed["message"], allowed["retryAfterSeconds"] = true, true, true, true
		if e.Code < 400 || e.Code > 599 {
			errs = append(errs, field.Invalid(at.Child("code"), e.Code, "must be the code of an error: 400 to 599"))
		}
		if e.RetryAfterSeconds < 0 {
			errs = append(errs, field.Invalid(at.Child("retryAfterSeconds"), e.RetryAfterSeconds, "must not be negative"))
		}
		effect = Refuse(e.status)
	case typeDelay:
		allowed["duration"] = true
		d, err := time.ParseDuration(e.Duration)
		if err != nil || d <= 0 {
			errs = append(errs, field.Invalid(at.Child("duration"), e.Duration, "must be a time such as 2s"))
		}
		effect = Delay(d)
	case typeHangUp:
		effect = HangUp()
	case typeLoseAnswer:
		effect = LoseAnswer()
	case typeStaleView:
		allowed["resourceVersion"] = true
		if n, err := strconv.ParseInt(e.ResourceVersion, 10, 64); err != nil || n <= 0 {
			errs = append(errs, field.Invalid(at.Child("resourceVersion"), e.ResourceVersion, "must be the resourceVersion of an object or a list"))
		}
		effect = StaleView(e.ResourceVersion)
	case typeHoldEvents:
		effect = HoldEvents()
	default:
		return nil, field.ErrorList{field.NotSupported(at.Child("type"), e.Type, []string{typeDelay, typeHangUp, typeHoldEvents, typeLoseAnswer, typeStaleView, typeStatus})}
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"code", e.Code != 0}, {"reason", e.Reason != ""}, {"message", e.Message != ""}, {"retryAfterSeconds", e.RetryAfterSeconds != 0}, {"duration", e.Duration != ""}, {"resourceVersion", e.ResourceVersion != ""}} {
		if f.set && !allowed[f.name] {
			errs = append(errs, field.Forbidden(at.Child(f.name), fmt.Sprintf("the type %s does not have it", e.Type)))
		}
	}
	return effect, errs
}

// status returns the error for a request.
func (e *EffectSpec) status(r *http.Request) error {
	info := request.InfoOf(r)
	s := apierrors.NewGenericServerResponse(e.Code, info.Verb, schema.GroupResource{Group: info.Group, Resource: info.Resource}, info.Name, "", e.RetryAfterSeconds, false)
	if e.Reason != "" {
		s.ErrStatus.Reason = e.Reason
	}
	if e.Message != "" {
		s.ErrStatus.Message = e.Message
	}
	return s
}

// match reports whether the Spec selects a request. Requests without a resource are not selected.
func (s *Spec) match(q *request.Request) bool {
	info := &q.Info
	if !info.IsResource || len(s.Subresources) == 0 && info.Subresource != "" {
		return false
	}
	user := ""
	if q.User != nil {
		user = q.User.Name
	}
	return selects(s.Verbs, func(v string) bool { return MatchVerb(v, info.Verb) }) &&
		contains(s.Groups, info.Group) && contains(s.Resources, info.Resource) && contains(s.Subresources, info.Subresource) &&
		contains(s.Namespaces, info.Namespace) && contains(s.Names, info.Name) && contains(s.Users, user) &&
		selects(s.UserAgents, func(prefix string) bool { return strings.HasPrefix(q.Sent.Get("User-Agent"), prefix) })
}

func contains(list []string, value string) bool {
	return selects(list, func(v string) bool { return v == value })
}

func selects(list []string, matches func(string) bool) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(v string) bool { return v == everything || matches(v) })
}

// MatchVerb reports whether a verb is the wanted one: "read" stands for get, list and watch, and "write" for
// all others.
func MatchVerb(want, verb string) bool {
	switch want {
	case verb:
		return true
	case "read":
		return verb == "get" || verb == "list" || verb == "watch"
	case "write":
		return verb != "get" && verb != "list" && verb != "watch"
	}
	return false
}
