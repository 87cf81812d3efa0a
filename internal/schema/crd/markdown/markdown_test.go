package markdown

import (
	"bytes"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object/golden"
)

// Each file of testdata has definitions, and the page that is written of them.
func TestWrite(t *testing.T) {
	golden.Each(t, "testdata/*.txtar", func(t *testing.T, archive *golden.Archive) {
		page := &archive.Files[len(archive.Files)-1]
		var all []*v1.CustomResourceDefinition
		for _, f := range archive.Files[:len(archive.Files)-1] {
			d := &v1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(f.Data, d); err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
		}
		var out bytes.Buffer
		err := Write(&out, all, func(d *v1.CustomResourceDefinition, version string) map[string]any {
			if version != "v1" {
				return nil
			}
			return map[string]any{"apiVersion": d.Spec.Group + "/v1", "kind": d.Spec.Names.Kind, "metadata": map[string]any{"name": "example"}}
		})
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, page, out.String())
		checkLinks(t, out.String())
	})
}

// checkLinks checks that links within the page lead somewhere, and to one place.
func checkLinks(t *testing.T, page string) {
	t.Helper()
	for _, rest := range strings.Split(page, "](#")[1:] {
		name, _, _ := strings.Cut(rest, ")")
		if n := strings.Count(page, `<a id="`+name+`">`); n != 1 {
			t.Errorf("%d places are called %s", n, name)
		}
	}
}

// Texts are not taken for HTML or headings, and cells are in one line.
func TestEscape(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{cell("a\nb\n\nc\n- d\n- e"), "a b<br>c<br>- d<br>- e"},
		{cell("<name>"), "&lt;name>"},
		{code("a`b"), "`` a`b ``"},
		{code("a\n  b"), "`a b`"},
		{code(""), ""},
		{paragraph("# no heading\n<b>\n"), "\\# no heading\n&lt;b>"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

// Fields with equal paths in links have different anchors.
func TestAnchors(t *testing.T) {
	p := &page{anchors: map[string]string{}, taken: map[string]bool{}}
	d := &v1.CustomResourceDefinition{}
	d.Name = "a.example.com"
	one, other := p.anchor(d, "v1", "spec.a-b"), p.anchor(d, "v1", "spec.a.b")
	if one == other || one != p.anchor(d, "v1", "spec.a-b") || other != p.anchor(d, "v1", "spec.a.b") {
		t.Errorf("%s and %s", one, other)
	}
}
