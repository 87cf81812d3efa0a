package codec

import (
	"bytes"
	"encoding/json"

	"sigs.k8s.io/yaml"
)

// A parted is a list in YAML or indented JSON that is rendered object by object: a whole list as YAML
// takes fifty times the memory of its JSON.
type parted struct {
	format        Format
	before, after []byte // of the objects
	space         bytes.Buffer
}

// parts reports whether lists in the Format are rendered object by object.
func (f Format) parts() bool { return f.Media == YAML || f.Media == JSON && f.Pretty }

// placeholder is the only object of the document that split takes.
const placeholder = `"the-objects"`

// split returns the rendered document before and after its objects.
func (f Format) split(doc []byte) (*parted, error) {
	rendered, err := f.Render(doc)
	at := []byte(placeholder)
	if f.Media == YAML {
		at = []byte("- the-objects\n")
	}
	before, after, _ := bytes.Cut(rendered, at)
	return &parted{format: f, before: before, after: after}, err
}

// render replaces the JSON of an object with its rendering. The JSON is the rest of buf from an index.
func (p *parted) render(buf []byte, from, index int) ([]byte, error) {
	item := buf[from:]
	p.space.Reset()
	if p.format.Media == YAML {
		// Lines are as long as in the whole document, because the depth is the same.
		p.space.WriteString(`{"items":[`)
		p.space.Write(item)
		p.space.WriteString(`]}`)
		doc, err := yaml.JSONToYAML(p.space.Bytes())
		return append(buf[:from], bytes.TrimPrefix(doc, []byte("items:\n"))...), err
	}
	if index > 0 {
		p.space.WriteString(",\n    ")
	}
	if err := json.Indent(&p.space, item, "    ", "  "); err != nil {
		return buf, err
	}
	return append(buf[:from], p.space.Bytes()...), nil
}
