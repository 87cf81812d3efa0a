package kind_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
)

// Options are parsed from a query as in Kubernetes.
func TestOptions(t *testing.T) {
	read := kind.ReadOptions[corev1.PodLogOptions](corev1.SchemeGroupVersion.WithKind("PodLogOptions"))
	of := metav1.TypeMeta{APIVersion: "v1", Kind: "PodLogOptions"}
	since := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for query, want := range map[string]corev1.PodLogOptions{
		"":                           {TypeMeta: of},
		"container=c&container=d":    {TypeMeta: of, Container: "c"},
		"follow&previous=0&unknown=": {TypeMeta: of, Follow: true},
		"follow=FALSE&timestamps=x":  {TypeMeta: of, Timestamps: true},
		"tailLines=5&limitBytes=7":   {TypeMeta: of, TailLines: new(int64(5)), LimitBytes: new(int64(7))},
		"kind=x&sinceTime=2026-01-01T00:00:00Z&stream=All": {TypeMeta: of, SinceTime: &since, Stream: new("All")},
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(values)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		o := got.(*corev1.PodLogOptions)
		if d := cmp.Diff(&want, o, cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
	exec, err := kind.ReadOptions[corev1.PodExecOptions](corev1.SchemeGroupVersion.WithKind("PodExecOptions"))(url.Values{"command": {"ls", "-l"}})
	if err != nil || !cmp.Equal(exec.(*corev1.PodExecOptions).Command, []string{"ls", "-l"}) {
		t.Errorf("%v, %v", exec, err)
	}
	if _, err := read(url.Values{"tailLines": {"x"}}); err == nil {
		t.Error("a number that is none is taken")
	}
}
