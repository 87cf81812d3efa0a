package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// Columns show the responder that is active, or that was the last one.
func TestColumns(t *testing.T) {
	const (
		targets    = `targetResponders: [{name: a.io/x, priority: 2000, state: %s}, {name: b.io/x, priority: 1000, state: %s}], responders: [{name: a.io/x, %s}, {name: b.io/x}]`
		requesters = `, requesters: [{name: r.io/b, intent: Eviction}, {name: r.io/a, intent: Eviction}, {name: r.io/c, intent: Withdrawn}]`
	)
	for _, tt := range []struct {
		status string
		want   []string
	}{
		{``, []string{"p", "Pod", "Pending", "<unset> (0/0)", "<unset>", "<unknown>", "<none>", "<unset>", "<unset>"}},
		{`observedGeneration: 1, ` + fmt.Sprintf(targets, "Active", "Inactive", "startTime: NOW-5m;, expectedCompletionTime: NOW2h;, heartbeatTime: NOW-1m;, message: ' copies '") + requesters,
			[]string{"p", "Pod", "Progressing", "a.io/x (1/2)", "Started (5m ago)", "in 120m", "r.io/a + 1 more...", "60s ago", "copies"}},
		{`observedGeneration: 1, ` + fmt.Sprintf(targets, "Completed", "Inactive", "startTime: NOW-5m;, completionTime: NOW-2m;") + `, requesters: [{name: r.io/c, intent: Withdrawn}]`,
			[]string{"p", "Pod", "Progressing", "a.io/x (1/2)", "Completed (2m ago)", "-", "<withdrawn>", "<unset>", "<unset>"}},
		{fmt.Sprintf(targets, "Interrupted", "Interrupted", "startTime: NOW-5m;") + `, requesters: [{name: r.io/a, intent: Eviction}],
			conditions: [{type: Failed, status: "True", reason: NoFurtherResponder}, {type: TargetEvicted, status: "False", reason: R}]`,
			[]string{"p", "Pod", "Failed (NoFurtherResponder)", "b.io/x (2/2)", "Interrupted", "-", "r.io/a", "<unset>", "<unset>"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			obj := read(t, tt.status)
			var got []string
			for _, c := range evictions().Versions[0].Columns() {
				if c.Name != "Age" {
					got = append(got, fmt.Sprint(c.Cell(obj)))
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s:\n%q\n%q", tt.status, got, tt.want)
			}
		})
	}
}
