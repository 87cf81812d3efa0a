// Package crash kills the server during writes, and checks its guarantees.
//
// Eight writers create, update, patch and delete custom objects of their own, and increment a shared
// object. A watcher follows all changes. The test kills the process at a random moment, again and
// again, and restarts it on the same data. Then:
//
//   - acknowledged writes are stored, and every stored object was written;
//   - an object is the one that was sent, whole;
//   - a write without a response happened entirely or not at all;
//   - revisions grow and are never used twice, also across restarts;
//   - the watcher, resumed from its last event, has missed no event, and has seen no object that does
//     not exist.
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

// A record is the custom object of the test.
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

// A spec has a checksum, which detects missing parts: Sum is over Value and Padding.
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

// check returns an error for an incomplete record.
func (r record) check() error {
	if r.Spec.Sum != sum(r.Spec.Value, r.Spec.Padding) {
		return fmt.Errorf("%s at %s is torn: value %d, %d bytes of padding, and the sum of something else",
			r.Metadata.Name, r.Metadata.ResourceVersion, r.Spec.Value, len(r.Spec.Padding))
	}
	return nil
}

// definitionOf returns the CustomResourceDefinition of records.
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
