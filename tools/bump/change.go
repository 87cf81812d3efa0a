package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// change writes the versions into the tree, and returns notes for the report.
func (b *bump) change(ctx context.Context, mods []goMod, current string, versions map[string]string, t *tree, r releases) (notes []string, err error) {
	line, err := b.goCommand.goLine(ctx, "k8s.io/api@"+versionFor("k8s.io/api", b.to))
	if err != nil {
		return nil, err
	}
	var raised []goMod
	for _, m := range mods {
		if !isOurs(m.mod) {
			theirs := map[string]bool{}
			if followers(theirs, m.mod, current); len(theirs) > 0 {
				notes = append(notes, m.name+" builds published programs: it keeps its versions")
			}
			continue
		}
		before := m.mod.Go.Version
		n, err := raise(m.mod, current, versions, line)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			continue
		}
		if err := requireOthers(m.mod, b.with); err != nil {
			return nil, err
		}
		m.mod.Cleanup()
		if err := b.writeFile(m.name, modfileText(m)); err != nil {
			return nil, err
		}
		raised = append(raised, m)
		note := fmt.Sprintf("%s: %d lines", m.name, n)
		if before != m.mod.Go.Version {
			note += ", go " + before + " became " + m.mod.Go.Version
		}
		notes = append(notes, note)
	}
	if err := b.setVersion(); err != nil {
		return nil, err
	}
	if err := b.writeFile(gatesFile, []byte(gatesText(r.gates))); err != nil {
		return nil, err
	}
	rewritten, err := b.rewrite(t, mods, r)
	if err != nil {
		return nil, err
	}
	notes = append(notes, rewritten...)
	for _, m := range raised {
		b.step("go mod tidy in %s", path.Dir(m.name))
		command := b.goCommand
		command.dir = filepath.Join(b.source, filepath.FromSlash(path.Dir(m.name)))
		if _, err := command.run(ctx, "mod", "tidy"); err != nil {
			// The rest of the tree can be changed without it.
			notes = append(notes, fmt.Sprintf("%s: %s", m.name, strings.Join(strings.Fields(err.Error()), " ")))
		}
	}
	return notes, nil
}

func modfileText(m goMod) []byte {
	data, err := m.mod.Format()
	if err != nil {
		panic(err) // Format of a parsed file has no errors
	}
	return data
}

func (b *bump) writeFile(name string, data []byte) error {
	return os.WriteFile(filepath.Join(b.source, filepath.FromSlash(name)), data, 0o644)
}

var (
	minorLine   = regexp.MustCompile(`(?m)^(\tMinor = )".*"`)
	patchLine   = regexp.MustCompile(`(?m)^(\tPatch = )".*"`)
	releaseLine = regexp.MustCompile(`(?m)^(const Current Release = )\d+`)
)

// setVersion writes the version of the server, and its name on pages.
func (b *bump) setVersion() error {
	minor, patch, _ := strings.Cut(strings.TrimPrefix(b.to, "v1."), ".")
	for _, name := range []string{versionFile, releaseFile} {
		data, err := os.ReadFile(filepath.Join(b.source, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		data = minorLine.ReplaceAll(data, []byte(`${1}"`+minor+`"`))
		data = patchLine.ReplaceAll(data, []byte(`${1}"`+patch+`"`))
		data = releaseLine.ReplaceAll(data, []byte(`${1}`+minor))
		if err := b.writeFile(name, data); err != nil {
			return err
		}
	}
	short := func(release string) string { return strings.Join(strings.Split(release, ".")[:2], ".") } // v1.38
	for _, page := range pages() {
		data, err := os.ReadFile(filepath.Join(b.source, filepath.FromSlash(page)))
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(data), short(b.from), short(b.to))
		text = strings.ReplaceAll(text, "Kubernetes "+short(b.from)[1:], "Kubernetes "+short(b.to)[1:])
		if err := b.writeFile(page, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// pages name the release that the server implements.
func pages() []string { return []string{"README.md", "docs/features.md", "docs/kits.md"} }
