package object

import "k8s.io/apimachinery/pkg/api/validate/content"

// ValidatePathSegment returns the reasons why a name, or the prefix of a generated one, is not a
// valid path segment. Every name must satisfy it.
func ValidatePathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}
