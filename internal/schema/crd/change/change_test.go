package change

import (
	"bytes"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object/golden"
)

// Each file of testdata has an old and a new definition, and the findings.
func TestCompare(t *testing.T) {
	golden.Each(t, "testdata/*.txtar", func(t *testing.T, archive *golden.Archive) {
		if len(archive.Files) != 3 {
			t.Fatal(len(archive.Files))
		}
		old, now, want := parse(t, archive.Files[0].Data), parse(t, archive.Files[1].Data), &archive.Files[2]
		var got bytes.Buffer
		if err := WriteText(&got, CompareAll(old, now)); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, want, got.String())
		for _, same := range CompareAll(now, now) {
			if len(same.Findings) > 0 {
				t.Errorf("differs from itself: %v", same.Findings)
			}
		}
	})
}

func parse(t *testing.T, text []byte) []*v1.CustomResourceDefinition {
	t.Helper()
	d := &v1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, d); err != nil {
		t.Fatal(err)
	}
	return []*v1.CustomResourceDefinition{d}
}
