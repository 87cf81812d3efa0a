// Package order sorts short lists of large structs.
//
// Functions of package slices are compiled again for each struct, and one that sorts takes eight to twenty
// kilobytes of the program. A sort here takes a few hundred bytes. It is slower: lists of requests are sorted by
// package slices.
package order

import "sort"

// Stable sorts a list. Equal elements keep their order.
func Stable[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}
