package kind

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ReadOptions returns a parser of options from a query, for a Subresource that connects.
func ReadOptions[T any](of schema.GroupVersionKind) func(url.Values) (runtime.Object, error) {
	return func(query url.Values) (runtime.Object, error) {
		out := new(T)
		value := reflect.ValueOf(out).Elem()
		for i := range value.NumField() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			if in, ok := query[name]; ok && name != "" {
				if err := setOption(value.Field(i), in); err != nil {
					return nil, err
				}
			}
		}
		o := any(out).(runtime.Object)
		o.GetObjectKind().SetGroupVersionKind(of)
		return o, nil
	}
}

// setOption sets a field from the values of a query parameter, as Kubernetes does.
func setOption(field reflect.Value, in []string) error {
	switch out := field.Addr().Interface().(type) {
	case *string:
		return runtime.Convert_Slice_string_To_string(&in, out, nil)
	case *bool:
		return runtime.Convert_Slice_string_To_bool(&in, out, nil)
	case **int64:
		return runtime.Convert_Slice_string_To_Pointer_int64(&in, out, nil)
	case **metav1.Time:
		return metav1.Convert_Slice_string_To_Pointer_v1_Time(&in, out, nil)
	case **string:
		*out = new(string)
		return runtime.Convert_Slice_string_To_string(&in, *out, nil)
	case *[]string:
		*out = in
		return nil
	case *[]int32:
		return metav1.Convert_Slice_string_To_Slice_int32(&in, out, nil)
	}
	return fmt.Errorf("options cannot have a %s", field.Type())
}
