package object

import "k8s.io/apimachinery/pkg/api/validate/content"

// ValidatePathSegment returns what keeps a name, or the prefix of one that is to
// be generated, from being a part of a path. It is the least that every name
// must be.
func ValidatePathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}
