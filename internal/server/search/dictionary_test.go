package search

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Texts that begin like others, and as many as several chunks hold, keep their own documents.
func TestDictionary(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var d dictionary
	want := map[string][]uint32{}
	for document := range uint32(4000) {
		if document == 2000 {
			d.compact() // later documents add to compact postings, and new ones
		}
		for range 8 {
			text := strings.Repeat("ab", random.IntN(90)) + strings.Repeat("c", random.IntN(90))
			d.add([]byte(text), document)
			if all := want[text]; !slices.Contains(all, document) {
				want[text] = append(all, document)
			}
		}
	}
	if d.len != len(want) || len(d.chunks) < 5 {
		t.Errorf("%d texts in %d chunks, want %d", d.len, len(d.chunks), len(want))
	}
	for _, word := range []string{"a", "b", "ba", "bc", "ccc", strings.Repeat("ab", 80), strings.Repeat("ab", 80) + "cc", "aa", "d"} {
		for _, upTo := range []uint32{0, 1, 1000, 4000} {
			has := make([]bool, upTo)
			for text, documents := range want {
				for _, document := range documents {
					if document < upTo && strings.Contains(text, word) {
						has[document] = true
					}
				}
			}
			found := d.scan([]byte(word), upTo)
			for document := range upTo {
				if got := found[document/64]>>(document%64)&1 == 1; got != has[document] {
					t.Fatalf("%q: document %d of %d is found: %v, want %v", word, document, upTo, got, has[document])
				}
			}
		}
	}
}

// A filter has all trigrams of its texts, and few others.
func TestFilter(t *testing.T) {
	var f filter
	texts := []string{"", "a", "ab", "abc", "registry.example.com/web:1.17.3", "häßlich"}
	for _, text := range texts {
		f.add([]byte(text))
	}
	for _, text := range texts {
		for from := range len(text) + 1 {
			for to := from; to <= len(text); to++ {
				if word := text[from:to]; !f.has(trigramsOf([]byte(word))) {
					t.Errorf("%q is in %q", word, text)
				}
			}
		}
	}
	wrong, random := 0, rand.New(rand.NewPCG(3, 3))
	for range 1000 {
		if f.has(trigramsOf([]byte{byte(random.IntN(256)), byte(random.IntN(256)), byte(random.IntN(256))})) {
			wrong++
		}
	}
	if wrong > 50 {
		t.Errorf("%d of 1000 other trigrams are found", wrong)
	}
}

// A finder finds the same as bytes.Index, with rare bytes and with frequent ones.
func TestFinder(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	letters := strings.Repeat("a", 600) + strings.Repeat("b", 100) + "cde"
	letter := func(b []byte) []byte { // rare letters come together
		if len(b) > 0 && b[len(b)-1] >= 'c' {
			return append(b, "cdea"[random.IntN(4)])
		}
		return append(b, letters[random.IntN(len(letters))])
	}
	var f frequencies
	var text []byte
	for range 5000 {
		text = letter(text)
	}
	f.count(text)
	for range 20_000 {
		word := []byte{"abcde"[random.IntN(5)]}
		for range random.IntN(4) {
			word = letter(word)
		}
		find := f.finder(word)
		from := random.IntN(len(text))
		part := text[from:min(len(text), from+random.IntN(300))]
		if got, want := find(part), bytes.Index(part, word); got != want {
			t.Fatalf("%s in %s: %d, want %d", word, part, got, want)
		}
	}
}
