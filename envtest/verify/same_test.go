package verify

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSame(t *testing.T) {
	w := &World{Start: startNamer}
	x := &explorer{t: t, world: w, report: &Report{}, scenario: func(s *Scenario) {
		s.Apply(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", Labels: map[string]string{"three": "yes"}}})
		s.Apply(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "n", Labels: map[string]string{"three": "yes"}}})
		s.Settle()
	}}
	defer withoutBackoff()()
	defer repeatable(t)()
	if err := x.prepare(); err != nil {
		t.Fatal(err)
	}
	x.learn()
	diff := 0
	for seed := range 30 {
		p := Plan{{Kind: Shuffle, At: seed}, {Kind: CrashAfter, At: 1 + seed%6}}
		a, err := x.run(p, x.expect)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := x.run(p, x.expect)
		if sa, sb := Story(a.story).String(), Story(b.story).String(); sa != sb {
			diff++
			if diff < 3 {
				t.Log(p, "\n", sa, "\n", sb)
			}
		}
	}
	t.Log(diff, "of 30")
}
