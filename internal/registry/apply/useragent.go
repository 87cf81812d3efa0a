package apply

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
)

// DefaultManager returns the default field manager: the program in a User-Agent.
func DefaultManager(userAgent string) string {
	name, _, _ := strings.Cut(userAgent, "/")
	var b strings.Builder
	for _, r := range name {
		if unicode.IsPrint(r) && b.Len()+utf8.RuneLen(r) <= validation.FieldManagerMaxLength {
			b.WriteRune(r)
		}
	}
	return b.String()
}
