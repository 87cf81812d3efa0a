package audit

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/anykind/anykind/internal/object"
)

// appendEvent appends the JSON of an event, as json.Marshal does, without reflection: an event is
// written for each stage of each request.
func appendEvent(dst []byte, e *auditv1.Event) ([]byte, error) {
	dst = appendField(append(dst, '{'), "level", string(e.Level), true)
	dst = appendField(dst, "auditID", string(e.AuditID), true)
	dst = appendField(dst, "stage", string(e.Stage), true)
	dst = appendField(dst, "requestURI", e.RequestURI, true)
	dst = appendField(dst, "verb", e.Verb, true)
	dst = appendUser(appendKey(dst, "user"), &e.User)
	if e.ImpersonatedUser != nil {
		dst = appendUser(appendKey(dst, "impersonatedUser"), e.ImpersonatedUser)
	}
	if m := e.AuthenticationMetadata; m != nil {
		dst = append(appendField(append(appendKey(dst, "authenticationMetadata"), '{'), "impersonationConstraint", m.ImpersonationConstraint, false), '}')
	}
	dst = appendList(dst, "sourceIPs", e.SourceIPs)
	dst = appendField(dst, "userAgent", e.UserAgent, false)
	if o := e.ObjectRef; o != nil {
		dst = append(appendKey(dst, "objectRef"), '{')
		for _, f := range [...]struct{ key, value string }{
			{"resource", o.Resource}, {"namespace", o.Namespace}, {"name", o.Name}, {"uid", string(o.UID)}, {"apiGroup", o.APIGroup},
			{"apiVersion", o.APIVersion}, {"resourceVersion", o.ResourceVersion}, {"subresource", o.Subresource},
		} {
			dst = appendField(dst, f.key, f.value, false)
		}
		dst = append(dst, '}')
	}
	var err error
	if s := e.ResponseStatus; s != nil {
		if dst, err = appendStatus(appendKey(dst, "responseStatus"), s); err != nil {
			return nil, err
		}
	}
	if dst, err = appendObject(dst, "requestObject", e.RequestObject); err != nil {
		return nil, err
	}
	if dst, err = appendObject(dst, "responseObject", e.ResponseObject); err != nil {
		return nil, err
	}
	dst = appendTime(dst, "requestReceivedTimestamp", e.RequestReceivedTimestamp)
	dst = appendTime(dst, "stageTimestamp", e.StageTimestamp)
	if len(e.Annotations) > 0 {
		dst = append(appendKey(dst, "annotations"), '{')
		for _, k := range slices.Sorted(maps.Keys(e.Annotations)) {
			dst = object.AppendString(append(object.AppendString(separate(dst), k), ':'), e.Annotations[k])
		}
		dst = append(dst, '}')
	}
	return append(dst, '}'), nil
}

// separate appends a comma unless a value begins.
func separate(dst []byte) []byte {
	switch dst[len(dst)-1] {
	case '{', '[', ':':
		return dst
	}
	return append(dst, ',')
}

func appendKey(dst []byte, key string) []byte {
	dst = append(append(separate(dst), '"'), key...)
	return append(dst, '"', ':')
}

func appendField(dst []byte, key, value string, always bool) []byte {
	if value == "" && !always {
		return dst
	}
	return object.AppendString(appendKey(dst, key), value)
}

func appendList(dst []byte, key string, values []string) []byte {
	if len(values) == 0 {
		return dst
	}
	return appendStrings(appendKey(dst, key), values)
}

func appendStrings(dst []byte, values []string) []byte {
	dst = append(dst, '[')
	for _, v := range values {
		dst = object.AppendString(separate(dst), v)
	}
	return append(dst, ']')
}

func appendUser(dst []byte, u *authenticationv1.UserInfo) []byte {
	dst = appendField(append(dst, '{'), "username", u.Username, false)
	dst = appendField(dst, "uid", u.UID, false)
	dst = appendList(dst, "groups", u.Groups)
	if len(u.Extra) > 0 {
		dst = append(appendKey(dst, "extra"), '{')
		for _, k := range slices.Sorted(maps.Keys(u.Extra)) {
			dst = append(object.AppendString(separate(dst), k), ':')
			if v := u.Extra[k]; v != nil {
				dst = appendStrings(dst, v)
			} else {
				dst = append(dst, "null"...)
			}
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendStatus(dst []byte, s *metav1.Status) ([]byte, error) {
	if s.Status == "" && s.Message == "" && s.Reason == "" && s.Details == nil {
		dst = strconv.AppendInt(append(dst, `{"metadata":{},"code":`...), int64(s.Code), 10)
		return append(dst, '}'), nil
	}
	data, err := json.Marshal(s)
	return append(dst, data...), err
}

// appendObject appends an object. Its JSON may come from a client, so it is checked.
func appendObject(dst []byte, key string, o *runtime.Unknown) ([]byte, error) {
	if o == nil {
		return dst, nil
	}
	data, err := json.Marshal(json.RawMessage(o.Raw))
	return append(appendKey(dst, key), data...), err
}

func appendTime(dst []byte, key string, t metav1.MicroTime) []byte {
	dst = appendKey(dst, key)
	if t.IsZero() {
		return append(dst, "null"...)
	}
	dst = t.UTC().AppendFormat(append(dst, '"'), "2006-01-02T15:04:05.000000Z07:00")
	return append(dst, '"')
}
