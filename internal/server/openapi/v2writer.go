package openapi

import (
	"io"

	"github.com/anykind/anykind/internal/object"
)

// A v2Writer writes an OpenAPI v2 document piece by piece, as JSON or protobuf: a protobuf
// message may be split into consecutive parts.
type v2Writer struct {
	w        io.Writer
	protobuf bool

	buf     []byte
	more    bool   // a comma precedes the next part
	section string // the open section, in JSON
}

// enough is the size of a write.
const enough = 32 << 10

func (p *v2Writer) begin() {
	if !p.protobuf {
		p.buf = append(p.buf, '{')
	}
}

// field writes a field of the document.
func (p *v2Writer) field(name string, v any) {
	if p.protobuf {
		p.buf = protobufV2().one(p.buf, name, v)
	} else {
		p.close()
		p.name(name)
		p.buf = appendJSON(p.buf, v)
	}
	p.flush(enough)
}

// entry writes one entry of a field that is an object. Entries of a field are written
// consecutively.
func (p *v2Writer) entry(section, name string, v fields) {
	if p.protobuf {
		p.buf = protobufV2().one(p.buf, section, fields{name: v})
	} else {
		if p.section != section {
			p.close()
			p.name(section)
			p.buf = append(p.buf, '{')
			p.section, p.more = section, false
		}
		p.name(name)
		p.buf = appendJSON(p.buf, v)
	}
	p.flush(enough)
}

func (p *v2Writer) name(s string) {
	if p.more {
		p.buf = append(p.buf, ',')
	}
	p.more = true
	p.buf = append(object.AppendJSON(p.buf, s), ':')
}

// close ends the open section.
func (p *v2Writer) close() {
	if p.section != "" {
		p.buf = append(p.buf, '}')
		p.section, p.more = "", true
	}
}

func (p *v2Writer) end() {
	if !p.protobuf {
		p.close()
		p.buf = append(p.buf, '}')
	}
	p.flush(0)
}

// flush writes the buffer if it has at least atLeast bytes.
func (p *v2Writer) flush(atLeast int) {
	if len(p.buf) < atLeast {
		return
	}
	_, _ = p.w.Write(p.buf) // Writes to memory do not fail.
	p.buf = p.buf[:0]
}
