package oracle

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/schema"
)

// The checks of formats are implemented anew, for speed. Strings that almost have a format show
// whether both decide equally.
func TestFormatsRandom(t *testing.T) {
	ctx := context.Background()
	for i, name := range formatNames {
		p := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"a": {Type: "string", Format: name},
		}}
		upstream, err := NewValidator(p)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := schema.Parse(p, kind)
		if err != nil {
			t.Fatal(err)
		}
		g := newGenerator(uint64(i))
		right := 0
		for range *cases {
			obj := map[string]any{"a": g.almost()}
			got, want := ours.Validate(ctx, obj, nil), upstream.Create(ctx, obj)
			if len(want) == 0 {
				right++
			}
			if (len(got) == 0) != (len(want) == 0) {
				t.Fatalf("%s %q: %v, upstream %v", name, obj["a"], got, want)
			}
		}
		t.Logf("%s: %d of %d", name, right, *cases)
	}
}

// almost returns a string of a random format with a few mistakes.
func (g generator) almost() string {
	s := ""
	for s == "" {
		s, _ = pick(g, strange...).(string)
	}
	if g.one(20) {
		s = strings.Repeat(s, 1+g.IntN(30))
	}
	b := []byte(s)
	for range g.IntN(3) {
		at := g.IntN(len(b))
		c := pick(g, b[g.IntN(len(b))], 'a', 'Z', '0', '9', '-', '.', ':', '/', '=', ' ', '\n', 0xff, 'T', '1', '2')
		switch g.IntN(3) {
		case 0:
			b[at] = c
		case 1:
			b = append(b[:at+1:at+1], b[at:]...)
			b[at] = c
		default:
			if len(b) > 1 {
				b = append(b[:at:at], b[at+1:]...)
			}
		}
	}
	return string(b)
}
