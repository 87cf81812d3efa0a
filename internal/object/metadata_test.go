package object

import "testing"

// The metadata equals that of the served object.
func TestAppendMetadata(t *testing.T) {
	for stored, want := range map[string]string{
		`{"apiVersion":"v1","metadata":{"name":"n","uid":"u"},"spec":{"metadata":{}}}`: `{"name":"n","resourceVersion":"7","uid":"u"}`,
		`{"a":{"metadata":{"x":1}},"metadata":{}}`:                                     `{"resourceVersion":"7"}`,
		`{"metadata": {"resourceVersion":"3"} ,"z":[]}`:                                `{"resourceVersion":"7"}`,
		`{"metadata":{"name":"old"},"metadata":{"name":"new"}}`:                        `{"name":"old","resourceVersion":"7"}`,
	} {
		e, err := Scan([]byte(stored), 7)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(e.AppendMetadata(nil)); got != want {
			t.Errorf("%s: %s, want %s", stored, got, want)
		}
	}
}
