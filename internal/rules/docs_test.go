package rules

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Links to files of the repository resolve.
func TestLinksResolve(t *testing.T) {
	for _, f := range files(t) {
		if path.Ext(f.name) != ".md" {
			continue
		}
		for _, m := range markdownLink.FindAllStringSubmatch(string(f.data), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			to := path.Join(f.folder(), target)
			if _, err := os.Stat(filepath.Join(top, filepath.FromSlash(to))); err != nil {
				t.Errorf("%s links to %s, which is not there: mend the link or write the page", f.name, to)
			}
		}
	}
}

// Go files named in backquotes in documents exist.
func TestNamedFilesExist(t *testing.T) {
	named := regexp.MustCompile("`((?:internal|cmd|test|tools|docs)/[A-Za-z0-9_./-]+\\.(?:go|txtar|md))`")
	for _, f := range files(t) {
		if path.Ext(f.name) != ".md" {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(string(f.data), -1) {
			if _, err := os.Stat(filepath.Join(top, filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s speaks of %s, which is not there: say where it is now", f.name, m[1])
			}
		}
	}
}

// The flags in the README are flags of the program.
func TestNamedFlagsExist(t *testing.T) {
	var named map[string]bool
	var command strings.Builder
	for _, f := range files(t) {
		switch {
		case f.name == "README.md":
			named = findAll(f.data, "`--([a-z-]+)`")
		case f.isGo() && (f.folder() == "cmd/anykind" || f.folder() == "internal/app/flags"):
			command.Write(f.data)
		}
	}
	for flag := range named {
		if !strings.Contains(command.String(), strconv.Quote(flag)) {
			t.Errorf("README.md speaks of --%s, which the program does not have", flag)
		}
	}
}

// Each direct dependency of the product has a decision with its reason.
func TestDependenciesAreDecisions(t *testing.T) {
	const decision = "docs/decisions/0002-direct-dependencies.md"
	var decided, required, direct map[string]bool
	for _, f := range files(t) {
		switch f.name {
		case decision:
			decided = findAll(f.data, "(?m)^\\| `([^`]+)` \\|")
		case "go.mod":
			required = findAll(f.data, requirement)
			direct = findAll(regexp.MustCompile(`(?m)^.*// indirect$`).ReplaceAll(f.data, nil), requirement)
		}
	}
	if len(direct) == 0 || len(decided) == 0 {
		t.Fatalf("found %d requirements in go.mod and %d decisions in %s", len(direct), len(decided), decision)
	}
	imported := importedModules(t, required)
	for m := range imported {
		if !direct[m] {
			t.Errorf("the product imports %s, but go.mod has it as indirect: go mod tidy", m)
		}
		if !decided[m] {
			t.Errorf("the product imports %s: say what for in %s, or do without", m, decision)
		}
	}
	for m := range direct {
		if !imported[m] {
			t.Errorf("go.mod requires %s, which the product does not import: go mod tidy", m)
		}
	}
	for m := range decided {
		if !imported[m] {
			t.Errorf("%s has %s, which the product does not import: remove it", decision, m)
		}
	}
}

// requirement matches a module in a line of go.mod.
const requirement = `(?m)^(?:require )?\t?([a-z][^ \n]*\.[^ \n]*/[^ \n]+) v`

// importedModules returns the required modules that the product's code imports, including its
// tests.
func importedModules(t *testing.T, required map[string]bool) map[string]bool {
	imported := map[string]bool{}
	for _, f := range goFiles(t) {
		if !f.inProduct() {
			continue
		}
		for _, p := range f.imports() {
			best := ""
			for m := range required {
				if below(p, m) && len(m) > len(best) {
					best = m
				}
			}
			if best != "" {
				imported[best] = true
			}
		}
	}
	return imported
}

// findAll returns the matches of an expression's first group.
func findAll(data []byte, expression string) map[string]bool {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(expression).FindAllSubmatch(data, -1) {
		found[string(m[1])] = true
	}
	return found
}

// Decisions are numbered without gaps, dated, and listed.
func TestDecisionsAreInOrder(t *testing.T) {
	const folder = "docs/decisions"
	numbered := regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	var names []string
	var list string
	for _, f := range files(t) {
		if f.folder() != folder {
			continue
		}
		name := path.Base(f.name)
		if name == "README.md" {
			list = string(f.data)
			continue
		}
		if !numbered.MatchString(name) {
			t.Errorf("%s: a decision is named NNNN-what-was-decided.md", f.name)
			continue
		}
		if !regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d$`).Match(f.data) {
			t.Errorf("%s has no line with its date", f.name)
		}
		names = append(names, name)
	}
	for i, name := range names { // sorted by the walk
		if want := fmt.Sprintf("%04d-", i+1); !strings.HasPrefix(name, want) {
			t.Errorf("%s/%s comes after %d others: its number is %s", folder, name, i, want)
		}
		if !strings.Contains(list, "("+name+")") {
			t.Errorf("%s/README.md does not list %s", folder, name)
		}
	}
}
