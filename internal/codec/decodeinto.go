package codec

import kjson "sigs.k8s.io/json"

// DecodeInto reads a document into a Go value, such as the options of a
// request.
func DecodeInto(m Media, data []byte, into any) error {
	if m == Protobuf {
		u, err := envelope(data)
		if err != nil {
			return err
		}
		return unmarshalProtobuf(u.Raw, into)
	}
	data, _, err := toJSON(m, data)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
