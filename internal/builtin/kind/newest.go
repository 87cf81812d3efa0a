package kind

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Newest returns the name of the newest object with the value "true" in one of some annotations, or
// "".
func Newest[T any, P interface {
	*T
	metav1.Object
}](all []*T, annotations ...string) string {
	all = slices.DeleteFunc(all, func(o *T) bool {
		return !slices.ContainsFunc(annotations, func(key string) bool { return P(o).GetAnnotations()[key] == "true" })
	})
	if len(all) == 0 {
		return ""
	}
	newest := slices.MinFunc(all, func(x, y *T) int {
		return cmp.Or(P(y).GetCreationTimestamp().Compare(P(x).GetCreationTimestamp().Time), cmp.Compare(P(x).GetName(), P(y).GetName()))
	})
	return P(newest).GetName()
}
