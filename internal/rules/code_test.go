package rules

import (
	"bytes"
	"go/ast"
	"go/format"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Limits of a readable file.
const (
	maxFileLines    = 600
	maxFuncLines    = 80
	maxCommandLines = 100 // a file of a command has flags, not logic
	minComment      = 100 // bytes of a meaningful package comment
)

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	comments := map[string]string{}
	for _, f := range goFiles(t) {
		comments[f.folder()] += f.syntax.Doc.Text()
	}
	for folder, comment := range comments {
		if len(comment) < minComment {
			t.Errorf("package %s has no package comment of substance: say what it is, what it knows and what it does not, above one of its package clauses", folder)
		}
	}
}

func TestEveryTODOHasAnOwner(t *testing.T) {
	loose := regexp.MustCompile(`\b(TODO|FIXME|HACK)\b`)
	owned := regexp.MustCompile(`\bTODO\([a-z0-9#-]+\): `)
	for _, f := range goFiles(t) {
		for _, group := range f.syntax.Comments {
			for _, c := range group.List {
				if loose.MatchString(c.Text) && !owned.MatchString(c.Text) {
					t.Errorf("%s:%d: a TODO needs an owner: write // TODO(name): what, or do it", f.name, f.line(c.Pos()))
				}
			}
		}
	}
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, f := range goFiles(t) {
		limit := maxFileLines
		if strings.HasPrefix(f.name, "cmd/") {
			limit = maxCommandLines
		}
		if n := f.lines(); n > limit && !f.isTest() {
			t.Errorf("%s has %d lines, more than %d: split it where it changes its subject", f.name, n, limit)
		}
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || f.isTest() {
				continue
			}
			if n := f.line(fn.End()) - f.line(fn.Pos()) + 1; n > maxFuncLines {
				t.Errorf("%s:%d: function %s has %d lines, more than %d: give its parts names", f.name, f.line(fn.Pos()), fn.Name.Name, n, maxFuncLines)
			}
		}
	}
}

func TestNamesSaySomething(t *testing.T) {
	empty := regexp.MustCompile(`^(utils?|commons?|helpers?|managers?|base|misc|types|interfaces?)$`)
	for _, f := range goFiles(t) {
		if f.isTest() {
			continue // named after its subject
		}
		for _, word := range strings.FieldsFunc(strings.TrimSuffix(f.name, ".go"), func(r rune) bool { return r == '/' || r == '_' || r == '.' }) {
			if empty.MatchString(word) {
				t.Errorf("%s: %q names nothing: take the word of the API for what is in there", f.name, word)
			}
		}
	}
}

func TestNothingHappensBeforeMain(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s:%d: no init functions: list what is to be registered where it is put together", f.name, f.line(fn.Pos()))
			}
		}
	}
}

func TestFilesAreFormatted(t *testing.T) {
	for _, f := range goFiles(t) {
		want, err := format.Source(f.data)
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(f.data, want) {
			t.Errorf("%s is not formatted: make fmt", f.name)
		}
	}
}

// A test may sleep only on a fake clock.
func TestTestsDoNotWait(t *testing.T) {
	for _, f := range goFiles(t) {
		inBubble := false
		for _, p := range f.imports() {
			inBubble = inBubble || p == "testing/synctest"
		}
		if inBubble || !f.isTest() && f.inProduct() && path.Base(f.folder()) != "kvtest" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s:%d: tests do not sleep: wait for what you expect, or use testing/synctest", f.name, f.line(s.Pos()))
				}
			}
			return true
		})
	}
}

// The prefixes of stored keys are constants in one place. Tests have them as literals, so that they
// detect a change.
func TestKeysAreSpelledOnce(t *testing.T) {
	const place = "internal/object/resource/keys.go"
	spelled := false
	for _, f := range goFiles(t) {
		if !f.inProduct() || f.isTest() || strings.HasSuffix(f.folder(), "test") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.BasicLit)
			if !ok || !spellsKey(s.Value) {
				return true
			}
			if spelled = spelled || f.name == place; f.name != place {
				t.Errorf("%s:%d: %s spells a key of what is stored: use %s, or the Definition", f.name, f.line(s.Pos()), s.Value, place)
			}
			return true
		})
	}
	if !spelled {
		t.Errorf("%s does not say what keys begin with: say in this rule where that is now", place)
	}
}

// spellsKey reports whether a literal is a string with a key prefix.
func spellsKey(literal string) bool {
	value, err := strconv.Unquote(literal)
	return err == nil && (value == "/registry" || strings.HasPrefix(value, "/registry/"))
}

func TestSpellsKey(t *testing.T) {
	for literal, want := range map[string]bool{
		`"/registry/"`: true, "`/registry/pods/a`": true, `"/registry"`: true,
		`"k8s.io/apiserver/pkg/registry"`: false, `"/registryX"`: false, `1`: false, `'/'`: false,
	} {
		if got := spellsKey(literal); got != want {
			t.Errorf("%s: %v, want %v", literal, got, want)
		}
	}
}
