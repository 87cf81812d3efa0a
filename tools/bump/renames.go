package main

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

// renames returns the new paths of modules by their old ones: another major version, or another host. The last part of
// the path, without the version, is the same.
func renames(old, new facts) map[string]string {
	base := func(module string) string { return path.Base(majorVersion.ReplaceAllString(module, "")) }
	byBase := map[string]string{}
	for _, module := range new.names() {
		if _, kept := old[module]; !kept {
			byBase[base(module)] = module
		}
	}
	out := map[string]string{}
	for module := range old {
		if _, kept := new[module]; !kept && byBase[base(module)] != "" {
			out[module] = byBase[base(module)]
		}
	}
	return out
}

// renameImports returns the text of a Go file with the new paths of modules.
func renameImports(text string, modules map[string]string) string {
	for _, old := range slices.Sorted(maps.Keys(modules)) {
		line := regexp.MustCompile(`(?m)^((?:import |\t)(?:\w+ )?")` + regexp.QuoteMeta(old) + `(["/])`)
		text = line.ReplaceAllString(text, "${1}"+modules[old]+"${2}")
	}
	return text
}

// rewrite writes the changes of source files that follow wholly from the release: paths of renamed modules in imports,
// and words of tables. It returns notes for the report.
func (b *bump) rewrite(t *tree, mods []goMod, r releases) (notes []string, err error) {
	before, after, err := both(readRequired, r.old, r.new)
	if err != nil {
		return nil, err
	}
	modules := renames(before, after)
	renamed := 0
	for _, f := range t.files {
		if !strings.HasSuffix(f.name, ".go") || !inOurModule(f.name, mods) {
			continue
		}
		text := renameImports(f.data, modules)
		if text == f.data {
			continue
		}
		renamed++
		if err := b.writeFile(f.name, []byte(text)); err != nil {
			return nil, err
		}
	}
	for _, was := range slices.Sorted(maps.Keys(modules)) {
		notes = append(notes, was+" is "+modules[was]+" now")
	}
	if renamed > 0 {
		notes = append(notes, fmt.Sprintf("files with renamed imports: %d; make fmt", renamed))
	}
	rows, err := b.rewriteTables(t, r)
	return append(notes, rows...), err
}

// inOurModule reports whether the innermost module with a file follows the releases.
func inOurModule(file string, mods []goMod) bool {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		for _, m := range mods {
			if path.Dir(m.name) == dir {
				return isOurs(m.mod)
			}
		}
		if dir == "." {
			return false
		}
	}
}

// rewriteTables writes the words of tables that follow from tags. A row that the tables of several versions share is left
// to the report.
func (b *bump) rewriteTables(t *tree, r releases) (notes []string, err error) {
	all := readTables(t)
	changes := map[string][]rowChange{}
	for _, f := range r.places(all, false) {
		pkg, field, _ := strings.Cut(f.name, " ")
		if row, ok := find(all, pkg, field); ok && row.file != all[pkg].file {
			continue
		}
		changes[all[pkg].file] = append(changes[all[pkg].file], rowChange{field, f.words})
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		text, _ := t.file(name)
		if err := b.writeFile(name, []byte(writeRows(text, changes[name]))); err != nil {
			return nil, err
		}
		notes = append(notes, fmt.Sprintf("%s: rows written from tags: %d", name, len(changes[name])))
	}
	return notes, nil
}
