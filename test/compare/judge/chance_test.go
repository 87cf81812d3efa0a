package judge

import (
	"strings"
	"testing"

	"github.com/anykind/anykind/test/compare/wire"
)

// message returns a Status with a message; cause returns one with a cause.
func message(text string) []*wire.Answer {
	return []*wire.Answer{answer(422, `{"kind":"Status","message":`+quote(text)+`}`)}
}

func cause(field, text string) []*wire.Answer {
	return []*wire.Answer{answer(422, `{"kind":"Status","details":{"causes":[{"field":`+quote(field)+`,"reason":"R","message":`+quote(text)+`}]}}`)}
}

func table(cell string) []*wire.Answer {
	return []*wire.Answer{answer(200, `{"kind":"Table","rows":[{"cells":[`+quote(cell)+`]}]}`)}
}

func quote(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"` }

// Each value that a server chooses at random has an example of a real difference beside it.
func TestChance(t *testing.T) {
	const patch = `failed to create typed patch object (a/b; v1, Kind=Pod): `
	for _, tt := range []struct {
		name         string
		theirs, ours []*wire.Answer
		sent         string
		want         string
	}{
		{"an address in a cell", table("10.0.0.7"), table("10.0.0.9"), "", ""},
		{"an address that was sent, in a cell", table("10.0.0.7"), table("10.0.0.9"), `"10.0.0.7"`, "body.rows[].cells[]"},
		{"an address in place of none", table("10.0.0.7"), table("None"), "", "body.rows[].cells[]"},
		{"a node port in a cell", table("80:30001/TCP"), table("80:31002/TCP"), "", ""},
		{"a port in a cell", table("80:30001/TCP"), table("81:30001/TCP"), "", "body.rows[].cells[]"},
		{"a protocol in a cell", table("80:30001/TCP"), table("80:30001/UDP"), "", "body.rows[].cells[]"},
		{"a node port that was sent, in a cell", table("80:30001/TCP"), table("80:31002/TCP"), `30001`, "body.rows[].cells[]"},

		{"a node port in a cause", cause("spec.ports[1].nodePort", "Duplicate value: 30001"), cause("spec.ports[1].nodePort", "Duplicate value: 31002"), "", ""},
		{"a node port that was sent, in a cause", cause("spec.ports[1].nodePort", "Duplicate value: 30001"), cause("spec.ports[1].nodePort", "Duplicate value: 31002"), "30001", "words of a cause"},
		{"another number in a cause", cause("spec.ports[1].port", "Duplicate value: 1"), cause("spec.ports[1].port", "Duplicate value: 2"), "", "words of a cause"},
		{"a node port in a message", message("spec.ports[1].nodePort: Duplicate value: 30001"), message("spec.ports[1].nodePort: Duplicate value: 31002"), "", ""},
		{"a cause about another node port", message("spec.ports[1].nodePort: Duplicate value: 30001"), message("spec.ports[0].nodePort: Duplicate value: 30001"), "", "message"},

		{"a Go type of the program", message("json: cannot unmarshal number into Go value of type []handlers.jsonPatchOp"), message("json: cannot unmarshal number into Go value of type []apply.operation"), "", ""},
		{"a field of such a type", message("json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"), message("json: cannot unmarshal number into Go struct field operation.op of type string"), "", ""},
		{"another field of such a type", message("json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"), message("json: cannot unmarshal number into Go struct field operation.path of type string"), "", "message"},
		{"a type of the API", message("Go value of type v1.ObjectMeta"), message("Go value of type v1.TypeMeta"), "", "message"},
		{"a plain type", message("Go value of type string"), message("Go value of type int"), "", "message"},
		{"the type of an object that is no list", message("the requested object is not a list (*core.Pod)"), message("the requested object is not a list (*v1.Pod)"), "", ""},

		{"one of two fields that do not fit", message(patch + ".spec.a: field not declared in schema"), message(patch + ".spec.b: expected string, got 1"), `{"spec":{"a":1,"b":1}}`, ""},
		{"fields of items with a default in the key", message(patch + `.ports[port=1,protocol="TCP"].a: no`), message(patch + `.ports[port=1,protocol="TCP"].b: no`), `{"ports":[{"port":1,"a":1,"b":1}]}`, ""},
		{"a field whose name has a space", message(patch + "errors:\\n  .odd name.a: expected map, got 1\\n  .b: no"), message(patch + "errors:\\n  .b: no\\n  .odd name.a: expected map, got 1"), `{"odd name":{"a":1},"b":1}`, ""},
		{"a field at the beginning of the body", message(patch + ".Spec: no"), message(patch + ".a: no"), "Spec: {}\na: 1", ""},
		{"a field that was not sent", message(patch + ".spec.a: field not declared in schema"), message(patch + ".spec.c: field not declared in schema"), `{"spec":{"a":1,"b":1}}`, "message"},
		{"of another object", message(patch + ".spec.a: no"), message(strings.Replace(patch, "Pod", "Job", 1) + ".spec.a: no"), `{"spec":{"a":1}}`, "message"},
		{"fits in one", message(patch + ".spec.a: no"), message("the object is immutable"), `{"spec":{"a":1}}`, "message"},

		{"a cause that is listed twice there", []*wire.Answer{status2("a", "a")}, cause2("a"), "", ""},
		{"a cause that is listed twice here", cause2("a"), []*wire.Answer{status2("a", "a")}, "", "cause"},
		{"a cause more there", []*wire.Answer{status2("a", "b")}, cause2("a"), "", "cause"},

		{"a revision that a patch copied", []*wire.Answer{answer(200, object(uidA, "71", `,"a":{"resourceVersion":"71"}`))}, []*wire.Answer{answer(200, object(uidB, "99", `,"a":{"resourceVersion":"99"}`))}, "", ""},
		{"another text in its place", []*wire.Answer{answer(200, object(uidA, "71", `,"a":{"resourceVersion":"71"}`))}, []*wire.Answer{answer(200, object(uidB, "99", `,"a":{"resourceVersion":"98"}`))}, "", "body.a.resourceVersion"},
		{"a number that is no revision", []*wire.Answer{answer(200, object(uidA, "1", "")), message(`resourceVersion: "-1"`)[0]}, []*wire.Answer{answer(200, object(uidB, "9", "")), message(`resourceVersion: "-1"`)[0]}, "", ""},
		{"owners of one second", owned("Apply a", "Apply b"), owned("Apply b", "Apply a"), "", ""},
		{"owners by operation", owned("Apply a", "Update b"), owned("Update b", "Apply a"), "", "body.metadata.managedFields[].manager body.metadata.managedFields[].operation body.metadata.managedFields[].manager body.metadata.managedFields[].operation"},
		{"another owner", owned("Apply a", "Apply b"), owned("Apply a", "Apply c"), "", "body.metadata.managedFields[].manager"},
		{"the status of a FlowSchema", schema(``, ``), schema(`{"manager":"`+fairness+`"}`, `"status":{"conditions":[]}`), "", ""},
		{"another owner of a FlowSchema", schema(``, ``), schema(`{"manager":"compare"}`, ``), "", "length of body.metadata.managedFields"},
		{"the spec of a FlowSchema", schema(``, ``), schema(``, `"spec":{}`), "", "body.spec"},
		{"the status of a FlowSchema in a list", schemas(`{}`), schemas(`{"status":{}}`), "", ""},
		{"the spec of a FlowSchema in a list", schemas(`{}`), schemas(`{"spec":{}}`), "", "body.items[].spec"},

		{"a list that is shorter", list(`{"continue":"x","remainingItemCount":1}`, "1"), list(`{}`, "1,2"), "", "length of body.items"},
		{"a list that is shorter, and another field", list(`{"selfLink":"x"}`, "1"), list(`{}`, "1,2"), "", "length of body.items body.metadata.selfLink"},
		{"a list that goes on", list(`{"continue":"x"}`, "1,2"), list(`{}`, "1,2"), "", "body.metadata.continue"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(differences(tt.theirs, tt.ours, tt.sent), " "); got != tt.want {
				t.Errorf("differ in %q, want %q", got, tt.want)
			}
		})
	}
}

// cause2 returns a Status with one invalid field, in the form of status2.
func cause2(field string) []*wire.Answer {
	return []*wire.Answer{answer(422, `{"kind":"Status","reason":"Invalid","message":"`+field+`: no","details":{"causes":[{"field":"`+field+`","reason":"R","message":"no"}]}}`)}
}

func list(metadata, items string) []*wire.Answer {
	return []*wire.Answer{answer(200, `{"kind":"List","metadata":`+metadata+`,"items":[`+items+`]}`)}
}

func schema(owner, more string) []*wire.Answer {
	if more != "" {
		more = "," + more
	}
	return []*wire.Answer{answer(200, `{"kind":"FlowSchema","metadata":{"name":"a","managedFields":[`+owner+`]}`+more+`}`)}
}

func schemas(item string) []*wire.Answer {
	return []*wire.Answer{answer(200, `{"kind":"FlowSchemaList","items":[`+item+`]}`)}
}

// owned returns an object with two managers, each an operation and a name.
func owned(owners ...string) []*wire.Answer {
	var list []string
	for _, owner := range owners {
		operation, manager, _ := strings.Cut(owner, " ")
		list = append(list, `{"operation":`+quote(operation)+`,"manager":`+quote(manager)+`}`)
	}
	return []*wire.Answer{answer(200, `{"metadata":{"managedFields":[`+strings.Join(list, ",")+`]}}`)}
}
