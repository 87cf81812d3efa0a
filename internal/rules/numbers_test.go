package rules

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// numberLine is a line of numbers.txt: a name, a number, and a comment.
var numberLine = regexp.MustCompile(`(?m)^([a-z][a-z -]*[a-z])\s+(\d+)\s`)

// Numbers that erode may only get better: a measured number may not exceed the one in numbers.txt.
// A lower one is recorded with -update. Numbers that a rule cannot measure have their test
// elsewhere; the file names it.
func TestNumbersDoNotErode(t *testing.T) {
	const name = "numbers.txt"
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string]int{}
	for _, m := range numberLine.FindAllSubmatch(data, -1) {
		n, err := strconv.Atoi(string(m[2]))
		if err != nil {
			t.Fatal(err)
		}
		recorded[string(m[1])] = n
	}
	page := string(data)
	for name, measured := range numbers(t) {
		want, ok := recorded[name]
		switch {
		case !ok:
			t.Errorf("numbers.txt has no line for %q, which is %d", name, measured)
		case measured > want:
			t.Errorf("%s: %d, and numbers.txt allows %d", name, measured, want)
		case measured < want && *update:
			line := regexp.MustCompile(`(?m)^(` + name + `\s+)\d+`)
			page = line.ReplaceAllString(page, fmt.Sprintf("${1}%d", measured))
		case measured < want:
			t.Errorf("%s: %d is better than the %d of numbers.txt; record it: go test ./internal/rules -run Numbers -update", name, measured, want)
		}
	}
	if *update && page != string(data) {
		if err := os.WriteFile(name, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// numbers measures the repository.
func numbers(t *testing.T) map[string]int {
	t.Helper()
	n := map[string]int{"floors": floors(t), "imports upward": 0}
	order := wings(t)
	arrows(t, func(_ *file, from, to string) {
		if position(order, from) < position(order, to) {
			n["imports upward"]++
		}
	})
	folders := map[string]bool{}
	for _, f := range files(t) {
		if path.Base(f.name) == "go.mod" {
			n["modules"]++
			if f.name == "go.mod" {
				n["direct dependencies"] = directDependencies(string(f.data))
			}
		}
		if rest, ok := strings.CutPrefix(f.name, "internal/"); ok {
			folder, _, _ := strings.Cut(rest, "/")
			folders[folder] = true
		}
		if f.folder() != "internal/rules" {
			n["lines without a subject"] += subjectless(f)
		}
	}
	n["folders of internal"] = len(folders)
	return n
}

// directDependencies counts the requirements of a go.mod that the product imports itself.
func directDependencies(mod string) (n int) {
	for line := range strings.Lines(mod) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) == 2 && strings.HasPrefix(fields[1], "v") && strings.Contains(fields[0], ".") {
			n++
		}
	}
	return n
}

// floors returns the length of the longest chain of imports among packages of the product.
func floors(t *testing.T) int {
	t.Helper()
	imports := map[string][]string{}
	arrows(t, func(_ *file, from, to string) {
		if !slices.Contains(imports[from], to) {
			imports[from] = append(imports[from], to)
		}
	})
	depth := map[string]int{}
	var visit func(string) int
	visit = func(folder string) int {
		if depth[folder] == 0 {
			depth[folder] = 1
			for _, to := range imports[folder] {
				depth[folder] = max(depth[folder], 1+visit(to))
			}
		}
		return depth[folder]
	}
	highest := 0
	for folder := range imports {
		highest = max(highest, visit(folder))
	}
	return highest
}

var (
	vague     = regexp.MustCompile(`(?i)\b(somebody|nobody|whoever|anybody|everybody)\b`)
	headless  = regexp.MustCompile(`^(What|Who|Whoever) `)
	pastStart = regexp.MustCompile(`^\s*(//|#)\s*`)
)

// subjectless counts the lines that name no subject: those with somebody and the like, and comments
// that begin with What or Who.
func subjectless(f *file) (n int) {
	for line := range strings.Lines(string(f.data)) {
		if vague.MatchString(strings.ReplaceAll(line, "http.NoBody", "")) {
			n++
		}
	}
	if !f.isGo() {
		return n
	}
	for _, group := range f.syntax.Comments {
		if headless.MatchString(pastStart.ReplaceAllString(group.List[0].Text, "")) {
			n++
		}
	}
	return n
}

func TestLinesWithoutASubjectAreFound(t *testing.T) {
	f := parse(t, "package p\n\n// What it is.\nvar a int // nobody knows\n\n// A comment\n// with What in its second line.\nvar b int\n")
	if got := subjectless(f); got != 2 {
		t.Errorf("%d lines, want 2", got)
	}
}
