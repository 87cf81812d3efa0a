// Package crash kills the server while clients write to it, and checks what it
// promised.
//
// Eight writers create, update, patch and delete custom objects, each its own, and
// count together in one object that they share. A watcher sees it all. The process
// is killed at a random moment, again and again, and started on what it left. Then:
//
//   - what was acknowledged is there, and what is there was asked for;
//   - an object is the one that was sent, whole;
//   - a write without an answer happened entirely or not at all;
//   - revisions grow and are never used twice, across restarts too;
//   - the watcher, going on from the last event it saw, has missed nothing, and
//     has seen nothing that is not there.
package crash

import (
	"fmt"
	"hash/crc32"
	"strconv"
)

const (
	group      = "crash.example.com"
	definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	path       = "/apis/" + group + "/v1/namespaces/default/records"
)

// A record is the custom object that is written.
type record struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name            string `json:"name"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	UID             string `json:"uid,omitempty"`
}

// A spec can tell whether all of it is there: Sum is over Value and Padding.
type spec struct {
	Value   int64  `json:"value"`
	Padding string `json:"padding"`
	Sum     int64  `json:"sum"`
}

func newRecord(name string, value int64, padding string) record {
	return record{
		APIVersion: group + "/v1",
		Kind:       "Record",
		Metadata:   metadata{Name: name},
		Spec:       newSpec(value, padding),
	}
}

func newSpec(value int64, padding string) spec {
	return spec{Value: value, Padding: padding, Sum: sum(value, padding)}
}

func sum(value int64, padding string) int64 {
	return int64(crc32.ChecksumIEEE(strconv.AppendInt([]byte(padding), value, 10)))
}

// revision returns the record's resource version as a number.
func (r record) revision() (int64, error) {
	n, err := strconv.ParseInt(r.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s has resourceVersion %q: %w", r.Metadata.Name, r.Metadata.ResourceVersion, err)
	}
	return n, nil
}

// check says what is wrong with a record as it stands.
func (r record) check() error {
	if r.Spec.Sum != sum(r.Spec.Value, r.Spec.Padding) {
		return fmt.Errorf("%s at %s is torn: value %d, %d bytes of padding, and the sum of something else",
			r.Metadata.Name, r.Metadata.ResourceVersion, r.Spec.Value, len(r.Spec.Padding))
	}
	return nil
}

// definitionOf is the CustomResourceDefinition of records.
func definitionOf() map[string]any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": "records." + group},
		"spec": map[string]any{
			"group": group,
			"scope": "Namespaced",
			"names": map[string]any{"plural": "records", "singular": "record", "kind": "Record"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object",
					"properties": map[string]any{"spec": map[string]any{
						"type": "object",
						"properties": map[string]any{
							"value":   map[string]any{"type": "integer", "format": "int64"},
							"padding": map[string]any{"type": "string"},
							"sum":     map[string]any{"type": "integer", "format": "int64"},
						},
					}},
				}},
			}},
		},
	}
}
