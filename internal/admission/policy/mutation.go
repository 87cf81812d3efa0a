package policy

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celmutation "k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"

	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/jsonpatch"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry/apply"
	"github.com/anykind/anykind/internal/schema/celpolicy"
)

// A mutation is an expression that returns a patch, and the function that applies the patch.
type mutation struct {
	program *celpolicy.Program
	apply   func(to shape, t object.Tree, patch ref.Val) (object.Tree, error)
}

// make returns the mutated object. An error of type Status belongs to the request, others to the
// policy.
func (m *mutation) make(ctx context.Context, c *celpolicy.Compiler, about *celpolicy.About, subresource string, form *match.Form) (object.Tree, error) {
	if err := m.program.Err(); err != nil {
		return nil, err
	}
	patch, err, fatal := c.Evaluate(ctx, about, celpolicy.Budget).Eval(m.program)
	switch {
	case fatal != nil:
		return nil, fatal
	case err != nil:
		return nil, err
	}
	return m.apply(shapeOf(form, subresource), about.Object, patch)
}

// A shape is the type of the written object: a version of the resource, or the kind of a
// subresource. The zero value has no type.
type shape struct {
	version *resource.Version
	// published reports whether the OpenAPI document of the kind's group version has the type. The
	// kind of a subresource from another group is only in the document of the resource.
	published bool
}

func shapeOf(f *match.Form, subresource string) shape {
	s := f.Version.Subresource(subresource)
	switch {
	case s == nil || s.Kind.Empty():
		return shape{f.Version, true}
	case s.Definition == nil:
		return shape{}
	}
	return shape{s.Definition.StorageVersion(), s.Kind.GroupVersion() == f.Resource.GroupVersion()}
}

// configured applies an apply configuration, the result of an expression.
func configured(to shape, t object.Tree, patch ref.Val) (object.Tree, error) {
	made, ok := patch.(*dynamic.ObjectVal)
	if !ok {
		return nil, fmt.Errorf("unsupported return type from ApplyConfiguration expression: %v", patch.Type())
	}
	if err := made.CheckTypeNamesMatchFieldPathNames(); err != nil {
		return nil, fmt.Errorf("type mismatch: %w", err)
	}
	configuration, ok := made.Value().(object.Tree)
	if !ok {
		return nil, fmt.Errorf("invalid return type: %T", patch)
	}
	configuration["apiVersion"], configuration["kind"] = object.APIVersion(t), object.Kind(t)
	if !to.published {
		return nil, fmt.Errorf("error applying patch: failed to convert patch object to typed object: no corresponding type for %s, Kind=%s", object.APIVersion(t), object.Kind(t))
	}
	merged, err := apply.Configuration(to.version, t, configuration)
	if err != nil {
		return nil, fmt.Errorf("error applying patch: %w", err)
	}
	out, _ := plain(merged).(object.Tree)
	if to.version.HasGoType() {
		out, _ = integral(out).(object.Tree)
	}
	out, _, err = to.complete(out)
	return out, err
}

// integral converts whole floats to integers in place. Go types have integers in those fields.
func integral(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case object.Tree:
		for name, value := range v {
			v[name] = integral(value)
		}
	case []any:
		for i := range v {
			v[i] = integral(v[i])
		}
	}
	return v
}

// complete sets defaults. For a kind with a Go type it also decodes into that type.
func (s shape) complete(t object.Tree) (out object.Tree, unknown []string, err error) {
	switch {
	case s.version == nil:
		return t, nil, nil
	case !s.version.HasGoType():
		s.version.Schema.Default(t)
		return t, nil, nil
	}
	out, unknown, err = s.version.Schema.Complete(t)
	return out, unknown, status.Cause(err)
}

// patched applies a JSON patch, the result of an expression. If a test operation fails, the object
// stays unchanged.
func patched(to shape, t object.Tree, patch ref.Val) (object.Tree, error) {
	operations, err := operationsOf(patch)
	if err != nil {
		return nil, err
	}
	out, err := operations.Apply(t)
	switch {
	case errors.Is(err, jsonpatch.ErrTest):
		out = object.CloneTree(t)
	case err != nil:
		return nil, fmt.Errorf("JSON Patch: %w", err)
	case to.version != nil && to.version.HasGoType():
		of := codec.Expect{Kind: schema.FromAPIVersionAndKind(object.APIVersion(t), object.Kind(t))}
		if err := of.Name(out); err != nil {
			return nil, status.Internal(err)
		}
	case object.Kind(out) == "":
		return nil, status.Internal(fmt.Errorf("Object 'Kind' is missing in '%s'", object.AppendJSON(nil, out)))
	}
	out, unknown, err := to.complete(out)
	if err != nil {
		return nil, status.Internal(err)
	}
	if len(unknown) > 0 {
		for i, path := range unknown {
			unknown[i] = fmt.Sprintf("unknown field %q", path)
		}
		return nil, status.Internal(fmt.Errorf("strict decoding error: %s", strings.Join(unknown, ", ")))
	}
	return out, nil
}

// operationsOf returns the operations of a JSON patch.
func operationsOf(patch ref.Val) (jsonpatch.Operations, error) {
	list, ok := patch.(traits.Lister)
	if !ok {
		return nil, errors.New("type mismatch: JSONPatchType.expression should evaluate to array")
	}
	var all []map[string]any
	for it := list.Iterator(); it.HasNext() == types.True; {
		made, err := it.Next().ConvertToNative(reflect.TypeFor[*celmutation.JSONPatchVal]())
		if err != nil {
			return nil, fmt.Errorf("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch: %w", err)
		}
		one, err := operationOf(made.(*celmutation.JSONPatchVal))
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return jsonpatch.Decode(data)
}

func operationOf(made *celmutation.JSONPatchVal) (map[string]any, error) {
	one := map[string]any{"op": made.Op, "path": made.Path}
	if made.From != "" {
		one["from"] = made.From
	}
	if made.Val == nil {
		return one, nil
	}
	if o, ok := made.Val.(*dynamic.ObjectVal); ok {
		if err := o.CheckTypeNamesMatchFieldPathNames(); err != nil {
			return nil, fmt.Errorf("type mismatch: %w", err)
		}
	}
	value, err := made.Val.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err == nil {
		one["value"], err = json.Marshal(value)
	}
	if err != nil {
		return nil, fmt.Errorf("JSONPath valueExpression evaluated to a type that could not marshal to JSON: %w", err)
	}
	one["value"] = json.RawMessage(one["value"].([]byte))
	return one, nil
}

// plain converts the value of an expression to a part of a tree. It shares no memory with v.
func plain(v any) any {
	switch v := v.(type) {
	case nil, string, bool, int64, float64:
		return v
	case ref.Val:
		return plain(v.Value())
	case structpb.NullValue:
		return nil
	case uint64:
		return int64(v)
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	}
	switch of := reflect.ValueOf(v); of.Kind() {
	case reflect.Slice:
		out := make([]any, of.Len())
		for i := range out {
			out[i] = plain(of.Index(i).Interface())
		}
		return out
	case reflect.Map:
		out := make(object.Tree, of.Len())
		for each := of.MapRange(); each.Next(); {
			out[fmt.Sprint(plain(each.Key().Interface()))] = plain(each.Value().Interface())
		}
		return out
	}
	return v
}
