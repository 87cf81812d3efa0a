package rules

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A row of the rank table.
type row struct {
	rank  int
	later bool // not written yet
	test  bool // only tests import it
}

var tableRow = regexp.MustCompile("(?m)^\\| (\\d+) \\| (`[^|]*`)[^|]*\\| ([^|]*)\\|$")

// ranks reads the table in ARCHITECTURE.md: the rank of each folder.
func ranks(t *testing.T) map[string]row {
	t.Helper()
	for _, f := range files(t) {
		if f.name == "ARCHITECTURE.md" {
			table := map[string]row{}
			for _, m := range tableRow.FindAllStringSubmatch(string(f.data), -1) {
				rank, err := strconv.Atoi(m[1])
				if err != nil {
					t.Fatal(err)
				}
				folder := strings.Trim(m[2], "`")
				if folder == "anykind" {
					folder = "."
				}
				if _, twice := table[folder]; twice {
					t.Errorf("ARCHITECTURE.md: %s is in the rank table twice", folder)
				}
				table[folder] = row{rank: rank, later: strings.Contains(m[3], "(later)"), test: strings.HasPrefix(m[3], "tests: ")}
			}
			return table
		}
	}
	t.Fatal("there is no ARCHITECTURE.md")
	return nil
}

// folderOf returns the folder of an import of ours.
func folderOf(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// A package imports only packages of strictly lower rank. Tests may import what
// they like, as long as it compiles.
func TestImportsFollowTheRanks(t *testing.T) {
	table := ranks(t)
	for _, f := range goFiles(t) {
		if !f.inProduct() || f.isTest() {
			continue
		}
		from, ok := table[f.folder()]
		if !ok {
			continue // another test's finding
		}
		for _, imported := range f.imports() {
			folder, ours := folderOf(imported)
			if !ours {
				continue
			}
			if to, ok := table[folder]; ok && to.rank >= from.rank {
				t.Errorf("%s imports %s: rank %d may import only what is below it, and that is rank %d.\n"+
					"Move what you need down, have it passed in, or, if the table is wrong, change ARCHITECTURE.md and say why in docs/decisions.",
					f.name, folder, from.rank, to.rank)
			}
		}
	}
}

// The table is complete, and says nothing that is not so.
func TestRankTableIsComplete(t *testing.T) {
	table := ranks(t)
	if len(table) == 0 {
		t.Fatal("ARCHITECTURE.md has no rank table that can be read: its rows look like | 1 | `internal/codec` | what it is |")
	}
	exists := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.inProduct() {
			exists[f.folder()] = true
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(exists)) {
		r, ok := table[folder]
		switch {
		case !ok:
			t.Errorf("package %s is not in the rank table: give it a row in ARCHITECTURE.md, one above the highest rank it imports", folder)
		case r.later:
			t.Errorf("package %s exists, but the rank table has it as (later): remove that word in ARCHITECTURE.md", folder)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(table)) {
		if !exists[folder] && !table[folder].later {
			t.Errorf("the rank table has %s, which does not exist: remove the row from ARCHITECTURE.md or mark it (later)", folder)
		}
	}
}
