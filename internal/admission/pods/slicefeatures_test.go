package pods_test

import (
	"fmt"
	"testing"

	"github.com/anykind/anykind/internal/admission/admissiontest"
	"github.com/anykind/anykind/internal/admission/pods"
	"github.com/anykind/anykind/internal/object/gate"
)

// Devices that take resources of a node need a node that knows them.
func TestSliceFeatures(t *testing.T) {
	const (
		nodes = `{apiVersion: v1, kind: Node, metadata: {name: able, labels: {able: "yes"}}, status: {declaredFeatures: [DRANodeAllocatableResources]}}
---
{apiVersion: v1, kind: Node, metadata: {name: unable}}`
		takes    = `nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: "1"}}}`
		selector = `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: able, operator: %s}]}]}`
		unable   = `node "unable" does not support DRANodeAllocatableResources feature`
	)
	able, others := fmt.Sprintf(selector, "Exists"), fmt.Sprintf(selector, "DoesNotExist")
	for _, tt := range []struct {
		name, slice, device string
		off                 bool
		want                string // the reason of the refusal
	}{
		{name: "a node with the feature", slice: "nodeName: able", device: takes},
		{name: "a node without it", slice: "nodeName: unable", device: takes, want: unable},
		{name: "off", slice: "nodeName: unable", device: takes, off: true},
		{name: "a device without resources", slice: "nodeName: unable"},
		{name: "no node", slice: "nodeName: gone", device: takes, want: `node "gone" not found for device "d"`},
		{name: "selected nodes", slice: able, device: takes},
		{name: "other selected nodes", slice: others, device: takes, want: unable},
		{name: "all nodes", slice: "allNodes: true", device: takes, want: unable},
		{name: "a node of the device", slice: "perDeviceNodeSelection: true", device: takes + ", nodeName: able"},
		{name: "all nodes of the device", slice: "perDeviceNodeSelection: true", device: takes + ", allNodes: true", want: unable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gates := gate.With(map[gate.Name]bool{gate.DRANodeAllocatableResources: !tt.off})
			w := admissiontest.NewWithGates(t, gates, func(w *admissiontest.World) []any {
				return []any{&pods.NodeDeclaredFeatures{Nodes: listed(w)}}
			})
			w.Have(nodes)
			_, err := w.Create(`{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: d.example.com, pool: {name: p, resourceSliceCount: 1}, ` +
				tt.slice + `, devices: [{name: d, ` + tt.device + `}]}}`)
			got := ""
			if err != nil {
				got = err.Error()
			}
			want := tt.want
			if want != "" {
				want = `resourceslices.resource.k8s.io "s" is forbidden: ` + want
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
