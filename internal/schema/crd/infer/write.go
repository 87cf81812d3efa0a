package infer

import (
	"fmt"
	"io"

	"github.com/anykind/anykind/internal/schema/crd/manifest"
)

// Write writes the definition, with its notes as comments where they belong.
func (r *Result) Write(w io.Writer) error {
	var above []string
	comments := manifest.Comments{}
	for _, n := range r.Notes {
		if n.Path == "" {
			above = append(above, n.String())
			continue
		}
		at := manifest.Place{Version: n.Version, Path: n.Path}
		comments[at] = append(comments[at], n.Text)
	}
	if r.Samples > 0 {
		above = append([]string{"Inferred from " + count(r.Samples) + "."}, above...)
	}
	return manifest.Write(w, r.Definition, above, comments)
}

func count(samples int) string {
	if samples == 1 {
		return "1 sample"
	}
	return fmt.Sprintf("%d samples", samples)
}
