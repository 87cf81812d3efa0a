package crdtest

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func encoded(t *testing.T, definition map[string]any) []byte {
	t.Helper()
	data, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Benchmark results are comparable only while the size stays the same.
func TestProviderIsOfTheSizeItSays(t *testing.T) {
	all := Provider()
	names := map[any]bool{}
	small, large := 0, 0
	for i, d := range all {
		names[d["metadata"].(object)["name"]] = true
		n := len(encoded(t, d))
		switch {
		case i < 40 && n > 5_000 && n < 90_000:
			small += n
		case i >= 40 && n > 90_000 && n < 800_000:
			large = max(large, n)
		default:
			t.Errorf("%v has %d bytes", d["metadata"], n)
		}
	}
	if len(all) != 52 || len(names) != 52 {
		t.Errorf("%d definitions with %d names, want 52", len(all), len(names))
	}
	if mean := small / 40; mean < 20_000 || mean > 30_000 {
		t.Errorf("those of everyday size have %d bytes in the mean", mean)
	}
	if large < 650_000 {
		t.Errorf("the largest has %d bytes", large)
	}
}

func TestSameDefinitionEachTime(t *testing.T) {
	once, again := Provider(), Provider()
	for i := range once {
		if !bytes.Equal(encoded(t, once[i]), encoded(t, again[i])) {
			t.Errorf("definition %d is another one when it is made again", i)
		}
	}
	if bytes.Equal(encoded(t, Definition(1, 20, 1)), encoded(t, Definition(2, 20, 1))) {
		t.Error("definitions 1 and 2 are the same")
	}
}

// Versions differ in the form of blocks: an object in the last, a list before it.
func TestVersionsDiffer(t *testing.T) {
	versions := Definition(3, 100, 2)["spec"].(object)["versions"].(array)
	if len(versions) != 2 {
		t.Fatalf("%d versions", len(versions))
	}
	if cmp.Equal(versions[0].(object)["schema"], versions[1].(object)["schema"]) {
		t.Error("both versions have the same schema")
	}
}
