package events

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
)

const head = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n"

// write validates the create of an event.
func write(t *testing.T, r *RateLimit, namespace, user, source, group string) string {
	t.Helper()
	d := resource.New(resource.Definition{Group: group, Plural: "events", Kind: "Event", Namespaced: true, Versions: []*resource.Version{{Name: "v1"}}})
	err := r.Validate(t.Context(), &registry.Admission{
		Operation: registry.Create, Target: registry.Target{Definition: d, Version: d.Versions[0], Namespace: namespace}, User: &request.User{Name: user},
		Object: object.Tree{"source": object.Tree{"component": source}, "involvedObject": object.Tree{"name": "p"}},
	})
	if err == nil {
		return ""
	}
	return err.Error()
}

// Each limit has its own key, and buckets refill.
func TestLimits(t *testing.T) {
	const refused = "Too many requests: limit reached on type "
	tests := []struct {
		kind        string
		same, other [3]string // namespace, user, source
		want        string
	}{
		{"Server", [3]string{"a", "u", "s"}, [3]string{"b", "v", "t"}, refused + "Server for key "},
		{"Namespace", [3]string{"a", "u", "s"}, [3]string{"a", "v", "t"}, refused + "Namespace for key a"},
		{"Namespace", [3]string{"a", "u", "s"}, [3]string{"b", "u", "s"}, ""},
		{"User", [3]string{"a", "u", "s"}, [3]string{"b", "u", "t"}, refused + "User for key u"},
		{"User", [3]string{"a", "u", "s"}, [3]string{"a", "v", "s"}, ""},
		{"SourceAndObject", [3]string{"a", "u", "s"}, [3]string{"b", "v", "s"}, refused + "SourceAndObject for key sp"},
		{"SourceAndObject", [3]string{"a", "u", "s"}, [3]string{"a", "u", "t"}, ""},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			r, err := New([]byte(head + "limits: [{type: " + test.kind + ", qps: 2, burst: 3}]"))
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if got := write(t, r, test.same[0], test.same[1], test.same[2], corev1.GroupName); got != "" {
					t.Error(got)
				}
			}
			if got := write(t, r, test.other[0], test.other[1], test.other[2], corev1.GroupName); got != test.want {
				t.Errorf("%s: %q, want %q", test.kind, got, test.want)
			}
			if got := write(t, r, test.same[0], test.same[1], test.same[2], "events.k8s.io"); got != "" {
				t.Errorf("events of the other group are counted: %s", got)
			}
			time.Sleep(500 * time.Millisecond)
			if got := write(t, r, test.same[0], test.same[1], test.same[2], corev1.GroupName); got != "" {
				t.Errorf("%s: %s, half a second later", test.kind, got)
			}
		})
	}
}

func TestConfigurations(t *testing.T) {
	for text, want := range map[string]string{
		"":   `the configuration is a "" of "", not a "Configuration" of "eventratelimit.admission.k8s.io/v1alpha1"`,
		head: "limits: Invalid value: null: must not be empty",
		head + "limits: [{type: Unknown, qps: 0, burst: -1, cacheSize: -1}]": `[limits[0].type: Unsupported value: "Unknown": supported values: "Namespace", "Server", "SourceAndObject", "User", ` +
			`limits[0].burst: Invalid value: -1: must be positive, limits[0].qps: Invalid value: 0: must be positive, limits[0].cacheSize: Invalid value: -1: must not be negative]`,
		head + "limits: [{type: Server, qps: 1, burst: 1}]": "",
	} {
		got := ""
		if _, err := New([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\n%s\nwant\n%s", text, got, want)
		}
	}
}
