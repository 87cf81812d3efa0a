package model

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// enumsFile explains the values of enums: a line for each value, a paragraph for each enum. An
// enum is known by all of its values, so that fields with the same values share a paragraph.
//
//go:embed enums.txt
var enumsFile string

// explanations are the words for each value, by the values of the enum.
var explanations = sync.OnceValue(func() map[string]map[string]string {
	all := map[string]map[string]string{}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(enumsFile), "\n\n") {
		words := map[string]string{}
		var values []string
		for line := range strings.SplitSeq(paragraph, "\n") {
			value, explanation, _ := strings.Cut(line, " ")
			if value == `""` {
				value = ""
			}
			words[value] = explanation
			values = append(values, value)
		}
		all[strings.Join(slices.Sorted(slices.Values(values)), ",")] = words
	}
	return all
})

// EnumHeader begins the list of the values of an enum in a description.
const EnumHeader = "Possible enum values:"

// enumDoc lists the values in the form of Kubernetes' descriptions, each with its explanation
// where there is one.
func enumDoc(values []string) string {
	sorted := slices.Sorted(slices.Values(values))
	words := explanations()[strings.Join(sorted, ",")]
	doc := "\n\n" + EnumHeader
	for _, v := range sorted {
		doc += "\n - `\"" + v + "\"`"
		if explanation := words[v]; explanation != "" {
			doc += " " + explanation
		}
	}
	return doc
}
