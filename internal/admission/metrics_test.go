package admission

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/registry"
)

// slow is a plugin that rejects deletions.
type slow struct{}

func (slow) Mutate(_ context.Context, a *registry.Admission) error {
	if a.Operation == registry.Delete {
		return errors.New("no")
	}
	return nil
}

func (slow) Validate(context.Context, *registry.Admission) error { return nil }

// Each plugin is observed by its type and its result.
func TestDurations(t *testing.T) {
	m := NewMetrics()
	plugins, err := Make([]Plugin{{Name: "Slow", Make: Always(slow{})}}, nil, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, operation := range []registry.Operation{registry.Create, registry.Delete, registry.Delete} {
		_ = plugins.Mutators[0].Mutate(t.Context(), &registry.Admission{Operation: operation})
	}
	_ = plugins.Validators[0].Validate(t.Context(), &registry.Admission{Operation: registry.Connect})
	r := prometheus.NewRegistry()
	r.MustRegister(m.Collectors()...)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, series := range families[0].GetMetric() {
		key := ""
		for _, l := range series.GetLabel() {
			key += l.GetName() + "=" + l.GetValue() + " "
		}
		got[key] = series.GetHistogram().GetSampleCount()
	}
	for key, want := range map[string]uint64{
		"name=Slow operation=CREATE rejected=false type=admit ":     1,
		"name=Slow operation=DELETE rejected=true type=admit ":      2,
		"name=Slow operation=CONNECT rejected=false type=validate ": 1,
	} {
		if got[key] != want {
			t.Errorf("%s: %d, want %d", key, got[key], want)
		}
		delete(got, key)
	}
	if len(got) > 0 {
		t.Errorf("there are also %v", got)
	}
}
