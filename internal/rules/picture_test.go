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

// A floor is a row of the table of floors: all ranks from that of a package up to the
// next floor.
type floor struct {
	name   string
	lowest string // folder of the package with the lowest rank of the floor
	what   string
	from   int
	to     int
}

var floorRow = regexp.MustCompile("(?m)^\\| ([^|]+) \\| from `([^|`]+)` \\| ([^|]+) \\|$")

// floors reads the table of floors in ARCHITECTURE.md, the highest first.
func floors(t *testing.T, page string, table map[string]row) []floor {
	t.Helper()
	highest := 0
	for _, r := range table {
		highest = max(highest, r.rank)
	}
	var list []floor
	for _, m := range floorRow.FindAllStringSubmatch(page, -1) {
		r, ok := table[m[2]]
		if !ok {
			t.Fatalf("ARCHITECTURE.md: the floor %q begins with %s, which is not in the rank table", m[1], m[2])
		}
		list = append(list, floor{name: m[1], lowest: m[2], what: m[3], from: r.rank, to: highest})
		highest = r.rank - 1
	}
	if len(list) < 2 || highest >= 0 {
		t.Fatalf("ARCHITECTURE.md: %d floors are found, and ranks up to %d are on none: the rows look like | Ground | from `internal/kv` | what it is |", len(list), highest)
	}
	for _, f := range list {
		if f.from > f.to {
			t.Fatalf("ARCHITECTURE.md: the floor %q has no rank: begin it with a package of another rank than %s", f.name, f.lowest)
		}
	}
	return list
}

// rooms returns what the picture has of the rank table: each top folder with the
// highest rank of its own package or, if it has none, of those below it.
func rooms(table map[string]row) map[string]int {
	ranks := map[string]int{}
	for folder, r := range table {
		room := strings.TrimPrefix(folder, "internal/")
		if room != folder {
			room, _, _ = strings.Cut(room, "/")
		}
		own := folder == path.Join("internal", room)
		if _, has := table[path.Join("internal", room)]; r.later || r.test || has && !own {
			continue
		}
		if room == "." {
			room = "anykind (the top folder)"
		}
		ranks[room] = max(ranks[room], r.rank)
	}
	return ranks
}

// mermaid draws the floors, from top to bottom.
func mermaid(floors []floor, rooms map[string]int) string {
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TB\n")
	for i, f := range floors {
		var inside []string
		for _, room := range slices.Sorted(maps.Keys(rooms)) {
			if rank := rooms[room]; f.from <= rank && rank <= f.to {
				inside = append(inside, room)
			}
		}
		ranks := fmt.Sprintf("ranks %d to %d", f.from, f.to)
		if f.from == f.to {
			ranks = fmt.Sprintf("rank %d", f.from)
		}
		fmt.Fprintf(&b, "  f%d[\"<b>%s</b> (%s): %s", i, f.name, ranks, f.what)
		for line := range slices.Chunk(inside, 6) {
			fmt.Fprintf(&b, "<br/>%s", strings.Join(line, " · "))
		}
		b.WriteString("\"]\n")
	}
	for i := range floors[1:] {
		fmt.Fprintf(&b, "  f%d --> f%d\n", i, i+1)
	}
	b.WriteString("```\n")
	return b.String()
}

// The picture in ARCHITECTURE.md shows the floors and the rank table.
func TestPictureShowsTheRanks(t *testing.T) {
	const name = "ARCHITECTURE.md"
	var page string
	for _, f := range files(t) {
		if f.name == name {
			page = string(f.data)
		}
	}
	table := ranks(t)
	want := mermaid(floors(t, page, table), rooms(table))
	drawn := regexp.MustCompile("(?s)```mermaid\n.*?```\n").FindStringIndex(page)
	if drawn == nil {
		t.Fatalf("%s has no picture: add ```mermaid and ```, each on a line, and run go test ./internal/rules -run Picture -update", name)
	}
	if page[drawn[0]:drawn[1]] == want {
		return
	}
	if !*update {
		t.Errorf("the picture in %s is not what its tables say: go test ./internal/rules -run Picture -update", name)
		return
	}
	page = page[:drawn[0]] + want + page[drawn[1]:]
	if err := os.WriteFile(filepath.Join(top, name), []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}
