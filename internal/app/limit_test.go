//go:build !race

// The race detector multiplies the processor time of large objects by ten. The test sends one request at a time.

package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/kv"
)

// The limit of an object's size is the same in every store, for one large request and for many small
// additions.
func TestLimitOfObjects(t *testing.T) {
	for _, test := range []struct {
		name    string
		options Options
		limit   int
	}{
		{"in memory", Options{}, kv.DefaultMaxValueBytes},
		{"in a file", Options{Dir: t.TempDir()}, kv.DefaultMaxValueBytes},
		{"raised", Options{MaxObjectBytes: 4 << 20}, 4 << 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := start(t, test.options)
			defer stop(t, a)
			awaitStart(t, a)
			c := client(t, a, admin(t, a))
			do := func(method, path, body string, want int) string {
				t.Helper()
				code, answer := ask(t, c, method, a.URL()+path, "", body)
				if code != want {
					t.Fatalf("%s %s: %d %.300s, want %d", method, path, code, answer, want)
				}
				return answer
			}
			const bigs, one = "/apis/example.com/v1/bigs", "/apis/example.com/v1/bigs/a"
			big := func(name string, size int) string {
				return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Big","metadata":{"name":%q},"x":%q}`, name, strings.Repeat("x", size))
			}
			do("POST", definitions, definitionOf("Big", ""), 201)
			do("POST", bigs, big("a", 1), 201)
			grown := 0
			for ; ; grown++ {
				code, answer := ask(t, c, "PATCH", a.URL()+one, "", fmt.Sprintf(`{"f%d":%q}`, grown, strings.Repeat("x", 400_000)))
				if code == 200 {
					continue
				}
				if want := fmt.Sprintf("as it is stored, the limit is %d; --max-object-bytes raises it", test.limit); code != 413 || !strings.Contains(answer, want) {
					t.Fatalf("a patch too many: %d %.300s, want 413 %s", code, answer, want)
				}
				break
			}
			if want := test.limit / 400_200; grown != want {
				t.Errorf("%d patches of 400,000 bytes were taken, want %d", grown, want)
			}
			// The object can be written back, and equals its state before the rejection.
			was := do("GET", one, "", 200)
			if now := do("PUT", one, was, 200); now != was {
				t.Errorf("sent back, it is %d bytes, and was %d", len(now), len(was))
			}
			// The size of the stored object apart from x, without managedFields.
			var o object.Tree
			if err := json.Unmarshal([]byte(do("POST", bigs, big("b", 1), 201)), &o); err != nil {
				t.Fatal(err)
			}
			delete(object.Metadata(o), "managedFields")
			object.SetMetaString(o, "resourceVersion", "")
			around := len(object.AppendJSON(nil, o)) - 1
			do("POST", bigs, big("c", test.limit-around), 201)
			do("POST", bigs, big("d", test.limit-around+1), 413)
			do("GET", bigs+"/d", "", 404)
			do("POST", definitions, definitionOf("Huge", strings.Repeat("d", test.limit)), 413)
		})
	}
}

// definitionOf returns a CustomResourceDefinition that preserves unknown fields.
func definitionOf(kind, description string) string {
	plural := strings.ToLower(kind) + "s"
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.example.com"},
		"spec":{"group":"example.com","scope":"Cluster","names":{"plural":%[1]q,"kind":%q},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","description":%q,"x-kubernetes-preserve-unknown-fields":true}}}]}}`, plural, kind, description)
}
