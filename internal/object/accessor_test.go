package object

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

// managedFields of all sorts: as servers write them, as clients may send them, and broken.
var accounts = []string{
	`[]`,
	`[{}]`,
	`[{"manager":"a","operation":"Update","apiVersion":"g/v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"f:a":{}}}}]`,
	`[{"manager":"a","operation":"Apply","apiVersion":"g/v1","fieldsType":"FieldsV1","fieldsV1":{},"subresource":"status"}]`,
	`[{"manager":"a","fieldsV1":{"f:ports":{"k:{\"name\":\"http\",\"n\":1}":{".":{},"f:port":{}},"v:\"a\\\\b\"":{},"i:3":{}}}}]`,
	`[{"manager":"ä \" \\ \n < >","fieldsV1":{"f:ä":{},"f:\n":{},"f:<&>":{},"f:\u2028":{}}}]`,
	`[{"manager":"a","time":"2026-01-02T03:04:05+02:00"},{"manager":"b","operation":"Update"}]`,
	`[{"manager":"a","time":"yesterday"}]`,
	`[{"manager":"a","time":null,"fieldsV1":null}]`,
	`[{"manager":"a","time":"0001-01-01T00:00:00Z"}]`,
	`[{"manager":1}]`,
	`[{"manager":"a","fieldsV1":{"f:a":1,"f:b":[{}],"f:c":null,"f:d":"x"}}]`,
	`[{"manager":"a","fieldsV1":"x"}]`,
	`[{"manager":"a","other":"x"}]`,
	`["x"]`,
	`null`,
	`{}`,
}

// same decodes and encodes managedFields by an Accessor and by an Unstructured, and compares the
// results.
func same(t *testing.T, list any) {
	t.Helper()
	tree := func() Tree {
		return Tree{"metadata": Tree{"name": "x", "managedFields": Clone(list)}}
	}
	slow := &unstructured.Unstructured{Object: tree()}
	fast := AccessorOf(tree())
	want, got := slow.GetManagedFields(), fast.GetManagedFields()
	if diff := cmp.Diff(want, got, cmp.Transformer("json", sets)); diff != "" {
		t.Fatalf("read %v: %s", list, diff)
	}
	slow.SetManagedFields(want)
	fast.SetManagedFields(want)
	if diff := cmp.Diff(slow.Object, fast.Object); diff != "" {
		t.Fatalf("written of %v: %s", list, diff)
	}
}

// sets decodes a field set, whatever the form of its JSON.
func sets(f metav1.FieldsV1) any {
	var v any
	if err := json.Unmarshal(f.GetRawBytes(), &v); err != nil {
		return f.GetRawString()
	}
	return v
}

func TestAccountsAreReadAndWrittenAsByUnstructured(t *testing.T) {
	for _, s := range accounts {
		var list any
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(s), &list); err != nil {
			t.Fatal(err)
		}
		same(t, list)
	}
}

func FuzzAccounts(f *testing.F) {
	for _, s := range accounts {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var list any
		if kjson.UnmarshalCaseSensitivePreserveInts(data, &list) == nil {
			same(t, list)
		}
	})
}

// readSets decodes like encoding/json, or refuses.
func FuzzSets(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"f:a":{}}`, `{"f:a":{},"f:b":{".":{},"k:{\"a\":1}":{}}}`, `{"a":{}`, `{"a":{},}`, `{,}`, `{"a":1}`, `{"a"{}}`,
		`{"\\":{}}`, `{"\u0041":{}}`, `{"ä":{}}`, `{"a":{}} `, ` {}`, `{"a":{}}}`, `{"a":{},"a":{"b":{}}}`, `{{}}`, `{}{}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, rest, ok := readSets(data)
		if !ok || len(rest) > 0 {
			return
		}
		var want map[string]any
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("%q was read and is no JSON: %v", data, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q: %s", data, diff)
		}
	})
}

// Everything that a field manager writes has the usual form, and avoids reflection.
func TestUsualAccountsAreFast(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))
	e := metav1.ManagedFieldsEntry{
		Manager: "a", Operation: "Update", APIVersion: "g/v1", Time: &at, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{".":{},"f:ports":{".":{},"k:{\"name\":\"http\"}":{".":{},"f:name":{}}}}}`),
	}
	tree, ok := writeEntry(&e)
	if !ok {
		t.Fatal("it was not written")
	}
	var back metav1.ManagedFieldsEntry
	if !readEntry(tree, &back) {
		t.Fatal("it was not read")
	}
	back.Time = e.Time // times have no fractions of seconds
	if diff := cmp.Diff(e, back, cmp.Transformer("json", sets)); diff != "" {
		t.Error(diff)
	}
}
