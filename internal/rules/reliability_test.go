package rules

import (
	"regexp"
	"strings"
	"testing"
)

// The tests that docs/reliability.md names for its promises exist, and each promise has one.
func TestPromisesAreShown(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	page := ""
	for _, f := range files(t) {
		if f.name == "docs/reliability.md" {
			page = string(f.data)
		}
		if !strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		for _, m := range declared.FindAllSubmatch(f.data, -1) {
			tests[f.folder()+" "+string(m[1])] = true
		}
	}
	row := regexp.MustCompile(`(?m)^\| (.*) \| (.*) \|$`)
	named := regexp.MustCompile("`([a-z/]+)` (Test\\w+)")
	promises := 0
	for _, section := range strings.Split(page, "| promise | shown by |\n| --- | --- |\n")[1:] {
		rows, _, _ := strings.Cut(section, "\n\n")
		for _, m := range row.FindAllStringSubmatch(rows, -1) {
			promises++
			shown := named.FindAllStringSubmatch(m[2], -1)
			if len(shown) == 0 {
				t.Errorf("no test shows %q", m[1])
			}
			for _, s := range shown {
				if !tests[s[1]+" "+s[2]] {
					t.Errorf("%q is said to be shown by %s in %s, which is not there", m[1], s[2], s[1])
				}
			}
		}
	}
	if promises < 15 {
		t.Errorf("found %d promises in docs/reliability.md", promises)
	}
}
