package codec

import (
	"cmp"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// DecodeOptions decodes the options in a request body into their Go type. The apiVersion and kind
// are optional, but must match: sending a whole object instead is a client error. Kubernetes
// matches field names case-insensitively.
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
	doc, _, err := toJSON(m, data)
	switch {
	case err != nil && m == CBOR:
		return cmp.Or(malformed(data), err)
	case err != nil:
		return err
	}
	var found struct { // anonymous, because errors would contain a name
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}
	if err := json.Unmarshal(doc, &found); err != nil {
		return fmt.Errorf("couldn't get version/kind; json parse error: %v", err)
	}
	if err := isOptions(found, want); err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(doc, into)
}

// isOptions checks the kind of options. Every group has the same options.
func isOptions(m typeMeta, want schema.GroupVersionKind) error {
	if got := m.or(want); got.Kind != want.Kind {
		return unregistered(got)
	}
	return nil
}
