package examples

import (
	"flag"
	"strings"
)

var (
	reference = flag.String("reference", "", "compare with a server that is started if it is \"start\"")
	from      = flag.String("from", "", "read the examples of these `folders`, too, separated by commas")
)

func folders() []string {
	return strings.FieldsFunc(*from, func(r rune) bool { return r == ',' })
}
