package registry

import (
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// An update keeps the deletionTimestamp of the old object. A null is the zero time of a client. It stays only where it is
// rejected, unless the store has one from an earlier release.
func TestZeroDeletionTimestampIsKept(t *testing.T) {
	const ends = "2026-01-02T03:04:05Z"
	zero := object.Tree{"deletionTimestamp": nil}
	for _, tt := range []struct {
		name     string
		dialect  resource.Dialect
		now, was object.Tree
		want     object.Tree
	}{
		{"custom", resource.Custom, zero, object.Tree{}, object.Tree{}},
		{"built-in", resource.CompiledIn, zero, object.Tree{}, zero},
		{"built-in, in the store", resource.CompiledIn, object.Tree{}, zero, object.Tree{}},
		{"custom, in the store", resource.Custom, object.Tree{}, zero, object.Tree{}},
		{"deleted", resource.CompiledIn, zero, object.Tree{"deletionTimestamp": ends}, object.Tree{"deletionTimestamp": ends}},
	} {
		now := object.CloneTree(tt.now)
		keepSystemMetadata(&resource.Definition{Dialect: tt.dialect}, object.Tree{"metadata": now}, object.Tree{"metadata": tt.was})
		if !object.Equal(now, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, now, tt.want)
		}
	}
}
