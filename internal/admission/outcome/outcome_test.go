package outcome

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
)

func write(namespace, name string) *registry.Admission {
	return &registry.Admission{
		Operation: registry.Create, User: &request.User{Name: "jane"},
		Target: registry.Target{Definition: &resource.Definition{Group: "example.com", Plural: "widgets"}, Namespace: namespace, Name: name},
	}
}

// A Log has a fixed size. Writes that pass do not evict a rejection.
func TestLog(t *testing.T) {
	l, by, of := &Log{}, Origin{Step: "validating webhook", Configuration: "c", Name: "w"}, schema.GroupResource{Group: "example.com", Resource: "widgets"}
	l.Add(write("a", "refused"), by, Report{Result: Denied, Message: "no"})
	for i := range 3 * size {
		l.Add(write("b", fmt.Sprint(i)), by, Report{Result: Allowed})
	}
	if got := l.Last(of, "a", "refused", 10); len(got) != 1 || got[0].Message != "no" || got[0].Origin != by || got[0].User != "jane" {
		t.Errorf("%+v", got)
	}
	all := l.Last(of, "b", "", 3*size)
	if len(all) != size {
		t.Fatalf("%d outcomes", len(all))
	}
	for i, o := range all { // the newest first
		if want := fmt.Sprint(3*size - 1 - i); o.Object != want {
			t.Fatalf("%d: %s, want %s", i, o.Object, want)
		}
	}
	if got := l.Last(of, "", "", 5); len(got) != 5 {
		t.Errorf("%d outcomes, want 5", len(got))
	}
	if got := l.Last(schema.GroupResource{Resource: "widgets"}, "", "", 5); len(got) != 0 {
		t.Errorf("another group: %v", got)
	}
	(*Log)(nil).Add(write("a", "b"), by, Report{})
}

// Long texts and many warnings are shortened.
func TestLogOfLongTexts(t *testing.T) {
	l := &Log{}
	l.Add(write("a", "b"), Origin{}, Report{Result: Denied, Message: strings.Repeat("ä", maxText), Warnings: make([]string, 50)})
	got := l.Last(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "", "", 1)[0]
	if len(got.Message) > maxText+len("…") || !strings.HasSuffix(got.Message, "ä…") {
		t.Errorf("%d bytes: …%s", len(got.Message), got.Message[len(got.Message)-10:])
	}
	if n := len(got.Warnings); n != maxWarnings+1 || got.Warnings[n-1] != "and 42 more warnings" {
		t.Errorf("%q", got.Warnings)
	}
}

func BenchmarkAdd(b *testing.B) {
	l, w := &Log{}, write("a", "b")
	for b.Loop() {
		l.Add(w, Origin{}, Report{Result: Allowed})
	}
}
