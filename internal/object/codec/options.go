package codec

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// DecodeOptions reads the options of a request, which are in its body, into a value of
// their Go type. Options need not say what they are, but nothing else is taken for
// them: a whole object in their place is a mistake of the client. Kubernetes reads what
// they say without regard to upper and lower case.
func DecodeOptions(m Media, data []byte, want schema.GroupVersionKind, into any) error {
	if m == Protobuf {
		u, err := envelope(data)
		if err != nil {
			return err
		}
		if err := isOptions(typeMeta{u.APIVersion, u.Kind}, want); err != nil {
			return err
		}
		return unmarshalProtobuf(u.Raw, into)
	}
	data, _, err := toJSON(m, data)
	if err != nil {
		return err
	}
	var found struct { // without a name, which would be part of the words of an error
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}
	if err := json.Unmarshal(data, &found); err != nil {
		return fmt.Errorf("couldn't get version/kind; json parse error: %v", err)
	}
	if err := isOptions(found, want); err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}

// isOptions checks the kind of options. That of every group is the same.
func isOptions(m typeMeta, want schema.GroupVersionKind) error {
	if got := m.or(want); got.Kind != want.Kind {
		return unregistered(got)
	}
	return nil
}
