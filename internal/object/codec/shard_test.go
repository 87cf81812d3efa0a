package codec

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lists of Go types show the shard in JSON and in protobuf. Lists of custom objects, of metadata and Tables do not.
func TestShardOfList(t *testing.T) {
	meta := ListMeta{ResourceVersion: 9, Continue: "x", ShardSelector: "shardRange(a, '0', '1') || b"}
	const plain, shown = `"metadata":{"resourceVersion":"9","continue":"x"}`, `"metadata":{"resourceVersion":"9","continue":"x","shardInfo":{"selector":"shardRange(a, '0', '1') || b"}}`
	for _, tt := range []struct {
		format Format
		typed  bool
		want   string
	}{
		{Format{}, true, shown},
		{Format{}, false, `"metadata":{"continue":"x","resourceVersion":"9"}`},
		{Format{As: PartialMetadataList, Version: "v1"}, true, plain},
		{Format{As: Table, Version: "v1"}, true, plain},
	} {
		v := things(tt.format)
		v.KindFirst = tt.typed
		var out bytes.Buffer
		if err := v.NewList(&out, meta).Close(); err != nil || !bytes.Contains(out.Bytes(), []byte(tt.want)) {
			t.Errorf("%+v, a Go type %t: %v\n%s\nhas no %s", tt.format, tt.typed, err, out.String(), tt.want)
		}
	}
	listed := metav1.ListMeta{ResourceVersion: "9", Continue: "x", ShardInfo: &metav1.ShardInfo{Selector: meta.ShardSelector}}
	want := serialized(t, &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: listed})
	v := configMaps(Whole, "")
	v.KindFirst = true
	var out bytes.Buffer
	if err := v.NewList(&out, meta).Close(); err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%v\n got %q\nwant %q", err, out.Bytes(), want)
	}
	listed.ShardInfo = nil
	want = serialized(t, &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: listed})
	v, out = configMaps(PartialMetadataList, "v1"), bytes.Buffer{}
	v.KindFirst = true
	if err := v.NewList(&out, meta).Close(); err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("metadata: %v\n got %q\nwant %q", err, out.Bytes(), want)
	}
}
