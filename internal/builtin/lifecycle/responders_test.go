package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object/resource"
)

// read parses a status. NOW+DURATION is a time.
func read(t *testing.T, status string) map[string]any {
	t.Helper()
	for {
		before, rest, ok := strings.Cut(status, "NOW")
		if !ok {
			break
		}
		text, rest, _ := strings.Cut(rest, ";")
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		status = before + fmt.Sprintf("%q", time.Now().Add(d).UTC().Format(time.RFC3339)) + rest
	}
	data, err := yaml.YAMLToJSON([]byte(`{apiVersion: lifecycle.k8s.io/v1alpha1, kind: Eviction, metadata: {name: e, namespace: ns},
		spec: {target: {pod: {name: p, uid: 3d7fdff1-3fe5-48b9-b106-1ee24b0277f6}}}, status: {` + status + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	var obj map[string]any
	if err := utiljson.Unmarshal(data, &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// A status of an eviction changes as the controller and responders change it, at the present time. Comparisons with
// Kubernetes have more cases, of past times.
func TestResponders(t *testing.T) {
	const (
		targets = `targetResponders: [{name: a.io/x, priority: 2000, state: %s}, {name: b.io/x, priority: 1000, state: %s}]`
		began   = `startTime: NOW-10m;`
		failed  = `, conditions: [{type: Failed, status: "True", reason: R, message: "", lastTransitionTime: NOW0s;}]`
	)
	status := func(first, second, a, b string) string {
		return fmt.Sprintf(targets, first, second) + `, responders: [{name: a.io/x, ` + a + `}, {name: b.io/x, ` + b + `}]`
	}
	active := status("Active", "Inactive", began, "")
	for _, tt := range []struct{ name, old, status, want string }{
		{"the first becomes active", "", status("Active", "Inactive", `startTime: NOW0s;`, ""), ""},
		{"the first has begun in the past", "", status("Active", "Inactive", `startTime: NOW-1m;`, ""), "status.responders[0].startTime: must be set to the present time"},
		{"the second first", "", status("Inactive", "Active", "", `startTime: NOW0s;`),
			"status.targetResponders[0].state: must be one of: Active, because this responder is next in line; " +
				"status.targetResponders[1].state: must be one of: Inactive, because the previously active has not finished processing"},
		{"a heartbeat", active, status("Active", "Inactive", began+` , heartbeatTime: NOW-5s;`, ""), ""},
		{"an old heartbeat", active, status("Active", "Inactive", began+` , heartbeatTime: NOW-1m;`, ""), "status.responders[0].heartbeatTime: must be set to the present time"},
		{"an estimate", active, status("Active", "Inactive", began+` , expectedCompletionTime: NOW1h;`, ""), ""},
		{"a long estimate", active, status("Active", "Inactive", began+` , expectedCompletionTime: NOW100000h;`, ""), "status.responders[0].expectedCompletionTime: must complete within 10 years"},
		{"the first has completed", active, status("Active", "Inactive", began+` , completionTime: NOW0s;`, ""), ""},
		{"the next one", status("Active", "Inactive", began+` , completionTime: NOW-1m;`, ""),
			status("Completed", "Active", began+` , completionTime: NOW-1m;`, `startTime: NOW0s;`), ""},
		{"without a report", active, status("Interrupted", "Active", began, `startTime: NOW0s;`),
			"status.targetResponders[0].state: must stay Active because the responder is in progress and it should report status.responders.heartbeatTime or status.responders.completionTime"},
		{"without a report for long", status("Active", "Inactive", `startTime: NOW-30m;`, ""), status("Interrupted", "Active", `startTime: NOW-30m;`, `startTime: NOW0s;`), ""},
		{"the end", active, status("Canceled", "Inactive", began, "") + failed, ""},
		{"another one after the end", active, status("Canceled", "Active", began, `startTime: NOW0s;`) + failed,
			"status.targetResponders[1].state: must be one of: Inactive, because the eviction request has finished processing"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var details []string
			d := evictions()
			old, now := read(t, tt.old), read(t, tt.status)
			for _, err := range d.Versions[0].Subresource("status").Validate(t.Context(), &resource.Change{Object: now, Old: old}) {
				details = append(details, err.Field+": "+err.Detail)
			}
			if got := strings.Join(details, "; "); got != tt.want {
				t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
			}
		})
	}
}
