package registry

import (
	"maps"

	"github.com/anykind/anykind/internal/object"
)

// keepTimes restores the times of managedFields if the write changes nothing else. An apply cannot
// detect this by itself: its configuration may equal the object, or its changes may be dropped before
// storage.
func (w *write) keepTimes() {
	if w.old == nil {
		return
	}
	was, _ := object.Metadata(w.old)["managedFields"].([]any)
	metadata := object.Metadata(w.object)
	now, _ := metadata["managedFields"].([]any)
	if !onlyTimes(was, now) {
		return
	}
	metadata["managedFields"] = was
	if !object.Equal(w.old, w.object) {
		metadata["managedFields"] = now
		return
	}
	metadata["managedFields"] = object.Clone(was)
}

// onlyTimes reports whether entries differ only in their times.
func onlyTimes(was, now []any) bool {
	if len(was) != len(now) {
		return false
	}
	differ := false
	for i := range now {
		a, ok := was[i].(object.Tree)
		b, isTree := now[i].(object.Tree)
		if !ok || !isTree {
			return false
		}
		if a["time"] != b["time"] {
			differ = true
			b = maps.Clone(b)
			b["time"] = a["time"]
			if a["time"] == nil {
				delete(b, "time")
			}
		}
		if !object.Equal(a, b) {
			return false
		}
	}
	return differ
}
