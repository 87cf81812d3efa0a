package rules

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A word is banned from documents, comments or file names.
type word struct {
	pattern *regexp.Regexp
	instead string   // the suggestion
	except  []string // files and folders with present exceptions, with everything below them
}

// words are banned from documents and comments: a word with several meanings, or with none, gets a
// line.
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

// fileWords are banned from the names of Go files: they do not describe the content.
func fileWords() []word {
	return []word{{
		pattern: regexp.MustCompile(`^(keep|tell|again|pieces|ruled|hub|flow|explainmore|settled|judge|stuff|more|other|new|old)$`),
		instead: "say what is in it",
		except:  []string{"test/compare/judge"},
	}}
}

// find returns the occurrences of a word in a text, with their surroundings.
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

// prose returns the text of a document or the comments of a Go file, each paragraph or comment as
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
				t.Errorf("%s: the name of the file does not say what is in it: %s", f.name, w.instead)
			}
		}
	}
}

// Words are found across lines and in comments only, with exceptions.
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
