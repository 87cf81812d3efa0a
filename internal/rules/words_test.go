package rules

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A word is one that documents, comments or names of files do without.
type word struct {
	pattern *regexp.Regexp
	instead string   // what to write
	except  []string // files and folders that have it for now, with what is below them
}

// words are what documents and comments do without. A word that turns out to mean
// several things, or nothing, gets a line.
func words() []word {
	const say = "say what it does, and how much where that can be measured"
	return []word{
		{pattern: regexp.MustCompile(`(?i)\bjudg(e[sd]?|ing|e?ments?)\b`), instead: "write validate, check or decide, as Kubernetes does",
			except: []string{"test/compare"}},
		{pattern: regexp.MustCompile(`(?i)\b(kubectl|client-go|controller-runtime|clients)\b( of Kubernetes)?( work)? as (they are|it is)\b`),
			instead: "write unmodified"},
		{pattern: regexp.MustCompile(`\bWhat is not\b`), instead: "say what it is: begin with the thing that you speak of"},
		{pattern: regexp.MustCompile(`(?i)\b(robust(ly)?|seamless(ly)?|blazing(ly)?|powerful|world-class|leverag(e[sd]?|ing)|utili[sz](e[sd]?|ing))\b`), instead: say},
		{pattern: regexp.MustCompile(`(?i)\b(simply|obviously|of course|basically|actually|easily)\b`), instead: "leave it out"},
		{pattern: regexp.MustCompile(`(?i)\b(hence|thereof|whatsoever|in order to|note that)\b`), instead: "write so, of it, any, to; or leave it out"},
		{pattern: regexp.MustCompile(`(?i)\b(e\.g\.|i\.e\.|etc\.)`), instead: "write such as, that is, and others"},
		{pattern: regexp.MustCompile(`(?i)\b(blacklist|whitelist|sanity|dummy)\b`), instead: "say what is refused, allowed, checked or made up"},
	}
}

// fileWords are what names of Go files do without: they say nothing to somebody who
// has not opened the file.
func fileWords() []word {
	return []word{{
		pattern: regexp.MustCompile(`^(keep|tell|again|pieces|ruled|hub|flow|explainmore|settled|judge|stuff|more|other|new|old)$`),
		instead: "say what is in it",
		except:  []string{"test/compare/judge"},
	}}
}

// find returns what of a text is such a word, with what stands around it.
func (w word) find(f *file, text string) []string {
	if slices.ContainsFunc(w.except, func(e string) bool { return below(f.name, e) }) {
		return nil
	}
	var found []string
	for _, at := range w.pattern.FindAllStringIndex(text, -1) {
		found = append(found, text[max(0, at[0]-30):min(len(text), at[1]+30)])
	}
	return found
}

// prose returns what of a file is written for people, each paragraph or comment as
// one line.
func prose(f *file) []string {
	var all []string
	switch {
	case path.Ext(f.name) == ".md":
		all = strings.Split(string(f.data), "\n\n")
	case f.isGo():
		for _, group := range f.syntax.Comments {
			all = append(all, strings.Split(group.Text(), "\n\n")...)
		}
	}
	for i := range all {
		all[i] = strings.Join(strings.Fields(all[i]), " ")
	}
	return all
}

func TestWords(t *testing.T) {
	banned := words()
	for _, f := range files(t) {
		for _, paragraph := range prose(f) {
			for _, w := range banned {
				for _, found := range w.find(f, paragraph) {
					t.Errorf("%s: %q: %s", f.name, found, w.instead)
				}
			}
		}
	}
}

func TestNamesOfFiles(t *testing.T) {
	banned := fileWords()
	for _, f := range goFiles(t) {
		name := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.name), ".go"), "_test")
		for _, w := range banned {
			if len(w.find(f, name)) > 0 {
				t.Errorf("%s: the name of the file tells nobody what is in it: %s", f.name, w.instead)
			}
		}
	}
}

// The finder finds words across lines and in comments only, and makes exceptions.
func TestWordsAreFound(t *testing.T) {
	f := parse(t, "// Package p serves clients as\n// they are. It judges.\npackage p\n\nvar judge = \"judge\"\n\n// What is\n// not.\n")
	found := 0
	for _, paragraph := range prose(f) {
		for _, w := range words() {
			found += len(w.find(f, paragraph))
		}
	}
	if found != 3 {
		t.Errorf("found %d words, want 3", found)
	}
	w := word{pattern: regexp.MustCompile("a"), except: []string{"folder"}}
	for name, want := range map[string]int{"folder/a.go": 0, "folder2/a.go": 1} {
		if got := len(w.find(&file{name: name}, "a")); got != want {
			t.Errorf("%s: found %d, want %d", name, got, want)
		}
	}
}
