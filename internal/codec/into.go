package codec

import (
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// DecodeInto reads a document into a Go value, such as the options of a
// request.
func DecodeInto(m Media, data []byte, into any) error {
	switch m {
	case Protobuf:
		u, err := envelope(data)
		if err != nil {
			return err
		}
		return unmarshalProtobuf(u.Raw, into)
	case YAML:
		var err error
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return err
		}
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
