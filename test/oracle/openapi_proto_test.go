package oracle

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Media types of clients for protobuf.
const (
	v2Protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	v3Protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
)

// sameMessage reports the differences of two protobuf messages, of the type of empty.
func sameMessage(t *testing.T, at string, empty proto.Message, want, got []byte) {
	t.Helper()
	var trees [2]any
	for i, data := range [][]byte{want, got} {
		m := proto.Clone(empty)
		if err := proto.Unmarshal(data, m); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		trees[i] = tree(t, m.ProtoReflect())
	}
	sameDocument(t, at+" in protobuf", trees[0], trees[1])
}

// tree converts a message to objects and lists, with its YAML parsed.
func tree(t *testing.T, m protoreflect.Message) any {
	t.Helper()
	out := map[string]any{}
	for f, v := range m.Range {
		name := string(f.Name())
		switch {
		case f.IsList():
			out[name] = entries(t, f, v.List())
		case f.Kind() == protoreflect.MessageKind:
			out[name] = tree(t, v.Message())
		case name == "yaml":
			var value any
			if err := yaml.Unmarshal([]byte(v.String()), &value); err != nil {
				t.Fatal(err)
			}
			out[name] = value
		default:
			out[name] = v.Interface()
		}
	}
	return out
}

// entries converts a list to a list, or to an object if its entries are named.
func entries(t *testing.T, f protoreflect.FieldDescriptor, list protoreflect.List) any {
	t.Helper()
	out, object := make([]any, list.Len()), map[string]any{}
	for i := range out {
		out[i] = list.Get(i).Interface()
		if f.Kind() != protoreflect.MessageKind {
			continue
		}
		out[i] = tree(t, list.Get(i).Message())
		if strings.HasPrefix(string(f.Message().Name()), "Named") {
			entry := out[i].(map[string]any)
			object[entry["name"].(string)] = entry["value"]
		}
	}
	if len(object) > 0 {
		return object
	}
	return out
}
