package status_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/status"
)

// Errors have the words of apimachinery without duplicates, in the message and in the causes.
func TestInvalidWords(t *testing.T) {
	a, b := field.Required(field.NewPath("a"), ""), field.Invalid(field.NewPath("b"), "x", "is wrong")
	for _, tt := range []struct{ errs, distinct field.ErrorList }{
		{nil, nil}, {field.ErrorList{a}, field.ErrorList{a}}, {field.ErrorList{a, b}, field.ErrorList{a, b}},
		{field.ErrorList{a, a}, field.ErrorList{a}}, {field.ErrorList{b, a, b}, field.ErrorList{b, a}},
	} {
		kind := schema.GroupKind{Group: "example.com", Kind: "Widget"}
		got, want := status.Invalid(kind, "w", tt.errs).ErrStatus, apierrors.NewInvalid(kind, "w", tt.distinct).ErrStatus
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %+v\nwant %+v", tt.errs, got, want)
		}
	}
}

// Twice as many errors take twice the memory, not four times.
func TestInvalidIsLinear(t *testing.T) {
	bytes := func(n int) uint64 {
		errs := make(field.ErrorList, n)
		for i := range errs {
			errs[i] = field.Required(field.NewPath(strings.Repeat("x", 100)).Index(i), fmt.Sprint(i))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		status.Join(errs)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	small, large := bytes(500), bytes(4000)
	if large > 16*small {
		t.Errorf("%d bytes for 500 errors, %d for 4000", small, large)
	}
}
