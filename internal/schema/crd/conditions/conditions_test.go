package conditions_test

import (
	"testing"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/schema/crd/conditions"
)

var (
	monday  = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	tuesday = monday.AddDate(0, 0, 1)
)

func TestSetLeavesTheTime(t *testing.T) {
	terminating := v1.CustomResourceDefinitionCondition{Type: v1.Terminating, Status: v1.ConditionTrue}
	because := func(reason string) v1.CustomResourceDefinitionCondition {
		c := terminating
		c.Reason = reason
		return c
	}
	status := &v1.CustomResourceDefinitionStatus{Conditions: []v1.CustomResourceDefinitionCondition{because("A")}}
	conditions.Set(status, because("B"), monday)
	if at := status.Conditions[0].LastTransitionTime; !at.Equal(&metav1.Time{Time: monday}) {
		t.Errorf("a condition without a time got %v", at)
	}
	conditions.Set(status, because("C"), tuesday)
	if c := status.Conditions[0]; c.Reason != "C" || !c.LastTransitionTime.Equal(&metav1.Time{Time: monday}) {
		t.Errorf("a new reason gave %+v", c)
	}
	terminating.Status = v1.ConditionFalse
	conditions.Set(status, because("D"), tuesday)
	if c := status.Conditions[0]; !c.LastTransitionTime.Equal(&metav1.Time{Time: tuesday}) {
		t.Errorf("a new status gave %+v", c)
	}
	conditions.Remove(status, v1.Terminating)
	if c := conditions.Find(status, v1.Terminating); c != nil {
		t.Errorf("%+v is there after it was removed", c)
	}
}
