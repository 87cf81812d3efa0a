package builtin

import (
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// migration returns a StorageVersionMigration with a status.
func migration(status string) string {
	return `{metadata: {name: x}, spec: {resource: {group: example.com, resource: things}}, status: {` + status + `}}`
}

// having returns a status with conditions. Each is a name, after an exclamation mark if false.
func having(conditions ...string) string {
	var out []string
	for _, name := range conditions {
		status := "True"
		if n, no := strings.CutPrefix(name, "!"); no {
			name, status = n, "False"
		}
		out = append(out, `{type: `+name+`, status: "`+status+`", reason: A, message: x, lastTransitionTime: "2026-01-01T00:00:00Z"}`)
	}
	return "conditions: [" + strings.Join(out, ",") + "]"
}

// Errors of a migration, or of its status if there is an old one, are those of kube-apiserver.
func TestValidateMigration(t *testing.T) {
	d := definition(t, "storageversionmigrations")
	for _, tt := range []struct {
		old, object string
		want        []string
	}{
		{"", `{metadata: {name: x}, spec: {resource: {group: example.com, resource: things}}}`, nil},
		{"", `{metadata: {name: x}, spec: {resource: {resource: configmaps}}}`, nil},
		{"", `{metadata: {name: x}}`, []string{`spec.resource.resource: Required value: resource is required to be set`}},
		{"", `{metadata: {name: x}, spec: {resource: {group: A_b, resource: x/y}}}`, []string{
			`spec.resource.resource: Invalid value: "x/y": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
			`spec.resource.group: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
		}},
		{migration(``), strings.ReplaceAll(migration(``), "things", "x"), []string{
			`spec: Invalid value: {"Resource":{"group":"example.com","resource":"x"}}: field is immutable`,
		}},
		{migration(``), migration(`resourceVersion: abc`), []string{
			`status.resourceVersion: Invalid value: "abc": resource version is not well formed: abc`,
		}},
		{migration(`resourceVersion: "12"`), migration(`resourceVersion: "13"`), []string{
			`status.resourceVersion: Invalid value: "13": field is immutable`,
		}},
		{migration(``), migration(`conditions: [{type: Running, status: "True"}]`), []string{
			`status.conditions[0].lastTransitionTime: Required value`, `status.conditions[0].reason: Required value`,
		}},
		{migration(``), migration(having("Succeeded", "Failed")), []string{
			`status.conditions: Invalid value: [{"type":"Succeeded","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"A","message":"x"},{"type":"Failed","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"A","message":"x"}]: Both success and failed conditions cannot be true at the same time`,
		}},
		{migration(having("Succeeded")), migration(having("!Succeeded")), []string{
			`status.conditions: Invalid value: [{"type":"Succeeded","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"A","message":"x"}]: Success condition cannot be set to false once it is true`,
		}},
	} {
		var old map[string]any
		if tt.old != "" {
			old = read(t, tt.old)
		}
		validate := d.Validate
		obj := read(t, tt.object)
		if old != nil && object.Equal(obj["spec"], old["spec"]) {
			validate = d.StorageVersion().Subresource("status").Validate
		}
		same(t, tt.object, messages(validate(t.Context(), &resource.Change{Object: obj, Old: old})), tt.want)
	}
}

// The subresource status only changes the status, and the object only the rest.
func TestMigrationStatusApart(t *testing.T) {
	v := definition(t, "storageversionmigrations").Versions[0]
	created := read(t, migration(`resourceVersion: "3"`))
	v.Revert(t.Context(), &resource.Change{Object: created})
	same(t, "created", created, read(t, migration("")))

	changed := read(t, `{metadata: {name: x, labels: {a: b}}, spec: {}, status: {resourceVersion: "3"}}`)
	v.Subresource("status").Revert(t.Context(), &resource.Change{Object: changed, Old: created})
	same(t, "status written", changed, read(t, migration(`resourceVersion: "3"`)))

	kept := read(t, migration(""))
	v.Revert(t.Context(), &resource.Change{Object: kept, Old: changed})
	same(t, "object written", kept, changed)
}

func TestMigrationColumns(t *testing.T) {
	for _, tt := range []struct{ object, resource, status string }{
		{migration(""), "things.example.com", "Unknown"},
		{migration(having("Running")), "things.example.com", "Running"},
		{migration(having("!Running", "Succeeded")), "things.example.com", "Succeeded"},
		{`{spec: {resource: {resource: configmaps}}}`, "configmaps", "Unknown"},
	} {
		var got []any
		for _, c := range definition(t, "storageversionmigrations").Versions[0].Columns() {
			got = append(got, c.Cell(read(t, tt.object)))
		}
		same(t, tt.object, got, []any{tt.resource, tt.status})
	}
}
