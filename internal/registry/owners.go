package registry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/object"
)

// DropDuplicateOwners drops duplicate owner references of t, with a warning that includes when.
func DropDuplicateOwners(t object.Tree, when string, warn func(message string)) {
	refs, _ := object.Metadata(t)["ownerReferences"].([]any)
	var once []any
	var twice []string
	for _, ref := range refs {
		owner, _ := ref.(object.Tree)
		if owner != nil && slices.ContainsFunc(once, func(have any) bool { return object.Equal(have, ref) }) {
			twice = append(twice, fmt.Sprint(owner["uid"]))
			continue
		}
		once = append(once, ref)
	}
	if len(twice) == 0 {
		return
	}
	object.Metadata(t)["ownerReferences"] = once
	warn(fmt.Sprintf(".metadata.ownerReferences contains duplicate entries%s; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %s",
		when, strings.Join(twice, ", ")))
}
