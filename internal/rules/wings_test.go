package rules

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "draw the picture in ARCHITECTURE.md again")

// A wing is a folder of internal, with all packages below it.
type wing struct {
	folder string // such as internal/store
	what   string // its description
}

var wingRow = regexp.MustCompile("(?m)^\\| \\d+ \\| `(internal/\\w+)` \\| ([^|]+) \\|$")

// architecture returns the page with the table of wings.
func architecture(t *testing.T) string {
	t.Helper()
	for _, f := range files(t) {
		if f.name == "ARCHITECTURE.md" {
			return string(f.data)
		}
	}
	t.Fatal("there is no ARCHITECTURE.md")
	return ""
}

// wings reads the table of wings in ARCHITECTURE.md, in its order: each imports only those above it.
func wings(t *testing.T) []wing {
	t.Helper()
	var list []wing
	for _, m := range wingRow.FindAllStringSubmatch(architecture(t), -1) {
		list = append(list, wing{folder: m[1], what: m[2]})
	}
	if len(list) == 0 {
		t.Fatal("ARCHITECTURE.md has no table of wings: its rows look like | 2 | `internal/store` | what lives there |")
	}
	return list
}

// position returns the index of a folder's wing in the order. Packages outside internal come after
// all wings.
func position(order []wing, folder string) int {
	for i, w := range order {
		if below(folder, w.folder) {
			return i
		}
	}
	return len(order)
}

// folderOf returns the folder of an import of this module.
func folderOf(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// arrows calls do for the imports of the product from one folder to another. Tests may import more.
func arrows(t *testing.T, do func(f *file, from, to string)) {
	for _, f := range goFiles(t) {
		if !f.inProduct() || f.isTest() {
			continue
		}
		for _, imported := range f.imports() {
			if to, ours := folderOf(imported); ours {
				do(f, f.folder(), to)
			}
		}
	}
}

// A package imports its own wing and the wings above it in the table.
func TestImportsFollowTheWings(t *testing.T) {
	order := wings(t)
	arrows(t, func(f *file, from, to string) {
		if position(order, from) < position(order, to) {
			t.Errorf("%s imports %s: a wing imports only the wings above it in ARCHITECTURE.md.\n"+
				"Move the code to the wing that needs it, pass it in, or, if the order is wrong, change the table and write a decision.", f.name, to)
		}
	})
}

// The folders of a wing have no import cycle, counted with the packages below each folder.
func TestFoldersHaveNoCircle(t *testing.T) {
	folder := func(name string) string {
		parts := strings.Split(name, "/")
		return path.Join(parts[:min(3, len(parts))]...)
	}
	imports := map[string]map[string]bool{}
	arrows(t, func(_ *file, from, to string) {
		if from, to = folder(from), folder(to); from != to {
			if imports[from] == nil {
				imports[from] = map[string]bool{}
			}
			imports[from][to] = true
		}
	})
	for _, circle := range circles(imports) {
		t.Errorf("these folders import each other: %s", strings.Join(circle, " → "))
	}
}

// circles returns one cycle for each folder at which one is first found.
func circles(imports map[string]map[string]bool) (found [][]string) {
	const open, done = 1, 2
	state := map[string]int{}
	var way []string
	var visit func(from string)
	visit = func(from string) {
		state[from] = open
		way = append(way, from)
		for _, to := range slices.Sorted(maps.Keys(imports[from])) {
			switch state[to] {
			case open:
				found = append(found, append(slices.Clone(way[slices.Index(way, to):]), to))
			case done:
			default:
				visit(to)
			}
		}
		way = way[:len(way)-1]
		state[from] = done
	}
	for _, from := range slices.Sorted(maps.Keys(imports)) {
		if state[from] == 0 {
			visit(from)
		}
	}
	return found
}

func TestCirclesAreFound(t *testing.T) {
	for _, tt := range []struct {
		imports map[string]map[string]bool
		want    string
	}{
		{map[string]map[string]bool{"a": {"b": true}, "b": {"c": true}}, "[]"},
		{map[string]map[string]bool{"a": {"b": true, "c": true}, "b": {"d": true}, "c": {"d": true}}, "[]"},
		{map[string]map[string]bool{"a": {"b": true}, "b": {"c": true}, "c": {"b": true}}, "[[b c b]]"},
	} {
		if got := fmt.Sprint(circles(tt.imports)); got != tt.want {
			t.Errorf("circles of %v: %s, want %s", tt.imports, got, tt.want)
		}
	}
}

// Every folder of internal is a wing, each wing has a page, and the table has no other entries.
func TestEveryFolderIsAWing(t *testing.T) {
	order := wings(t)
	exists := map[string]bool{}
	for _, f := range goFiles(t) {
		if !strings.HasPrefix(f.name, "internal/") || f.folder() == "internal/rules" {
			continue
		}
		if position(order, f.folder()) == len(order) {
			t.Errorf("%s is in no wing: move it into one of those in ARCHITECTURE.md", f.name)
		}
		exists[f.name] = true
	}
	for _, w := range order {
		if !exists[w.folder+"/doc.go"] {
			t.Errorf("%s has no doc.go: its package comment says what lives there, which wings it imports, and where a reader begins", w.folder)
		}
	}
}

// mermaid draws the wings with their folders, in their order.
func mermaid(order []wing, folders map[string][]string) string {
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TB\n")
	for i, w := range slices.Backward(order) {
		fmt.Fprintf(&b, "  w%d[\"<b>%s</b>", i+1, strings.TrimPrefix(w.folder, "internal/"))
		for line := range slices.Chunk(folders[w.folder], 7) {
			fmt.Fprintf(&b, "<br/>%s", strings.Join(line, " · "))
		}
		b.WriteString("\"]\n")
	}
	for i := len(order); i > 1; i-- {
		fmt.Fprintf(&b, "  w%d --> w%d\n", i, i-1)
	}
	b.WriteString("```\n")
	return b.String()
}

// folders returns the folders of each wing that have product code.
func folders(t *testing.T, order []wing) map[string][]string {
	found := map[string][]string{}
	for _, f := range goFiles(t) {
		at := position(order, f.folder())
		if at == len(order) || f.isTest() || strings.HasSuffix(f.folder(), "test") || f.folder() == order[at].folder {
			continue
		}
		wing := order[at].folder
		name, _, _ := strings.Cut(strings.TrimPrefix(f.folder(), wing+"/"), "/")
		if !slices.Contains(found[wing], name) {
			found[wing] = append(found[wing], name)
		}
	}
	for _, names := range found {
		slices.Sort(names)
	}
	return found
}

// The picture in ARCHITECTURE.md shows the wings and their folders.
func TestPictureShowsTheWings(t *testing.T) {
	page, order := architecture(t), wings(t)
	want := mermaid(order, folders(t, order))
	drawn := regexp.MustCompile("(?s)```mermaid\n.*?```\n").FindStringIndex(page)
	if drawn == nil {
		t.Fatal("ARCHITECTURE.md has no picture: add ```mermaid and ```, each on a line, and run go test ./internal/rules -run Picture -update")
	}
	if page[drawn[0]:drawn[1]] == want {
		return
	}
	if !*update {
		t.Error("the picture in ARCHITECTURE.md is not what its table and the folders say: go test ./internal/rules -run Picture -update")
		return
	}
	page = page[:drawn[0]] + want + page[drawn[1]:]
	if err := os.WriteFile(filepath.Join(top, "ARCHITECTURE.md"), []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}
