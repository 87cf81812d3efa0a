package payload

import (
	"bytes"
	"encoding/json"
	"testing"
)

// What is sent follows from a number alone: asked again, it is the same bytes.
func TestSameNumberSameBytes(t *testing.T) {
	corpus, err := ReadCorpus()
	if err != nil {
		t.Fatal(err)
	}
	k := Kind{Group: Group}
	for name, make := range map[string]func(n int) []byte{
		"widget":     func(n int) []byte { return k.Widget("ns", n) },
		"applied":    func(n int) []byte { return k.Applied("ns", 7, n) },
		"patch":      Patch,
		"definition": func(n int) []byte { return corpus.Definition(n).Body },
		"first":      func(n int) []byte { return corpus.Definition(n).First },
	} {
		t.Run(name, func(t *testing.T) {
			for n := range 50 {
				one, two := make(n), make(n)
				if !bytes.Equal(one, two) {
					t.Fatalf("number %d is not always the same:\n%s\n%s", n, one, two)
				}
				if !json.Valid(one) {
					t.Fatalf("number %d is no JSON: %s", n, one)
				}
				if bytes.Equal(one, make(n+1)) {
					t.Fatalf("numbers %d and %d are the same", n, n+1)
				}
			}
		})
	}
}

// Definitions are as large as those of a provider are in the mean.
func TestDefinitionsAreOfTheUsualSize(t *testing.T) {
	corpus, err := ReadCorpus()
	if err != nil {
		t.Fatal(err)
	}
	n, size := len(corpus.all), 0
	for i := range n {
		size += len(corpus.Definition(i).Body)
	}
	if mean := size / n; n < 50 || mean < 20_000 || mean > 40_000 {
		t.Errorf("%d definitions with a mean of %d bytes", n, mean)
	}
}
