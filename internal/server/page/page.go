// Package page writes HTML pages for people with a browser. A page consists of markup,
// which is a constant of the program, and of text, which is escaped.
//
// It does not use html/template. A template calls methods by names that are known only at
// run time, so the linker keeps every exported method of every type. That made anykind
// larger by a quarter.
package page

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
)

// A Page is an HTML page under construction.
type Page struct{ body bytes.Buffer }

// Markup is trusted HTML. Its attributes have double quotes.
type Markup string

// New returns a page with its head.
func New(title string) *Page {
	p := &Page{}
	p.Add(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; }
table.wide { width: 100%%; }
th, td { text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0; }
th { font-weight: normal; color: #666; border-bottom: 1px solid #ccc; }
h2 { font-size: 1.1rem; margin: 2rem 0 .3rem; }
p.about { margin: .2rem 0; white-space: pre-line; }
small { color: #666; }
</style>
</head>
<body>
`, title)
	return p
}

// Add appends markup, with text in place of each %s.
func (p *Page) Add(markup Markup, text ...string) {
	escaped := make([]any, len(text))
	for i, t := range text {
		escaped[i] = html.EscapeString(t)
	}
	fmt.Fprintf(&p.body, string(markup), escaped...)
}

// Link adds a link to a path of this server.
func (p *Page) Link(path, text string) { p.Add(`<a href="%s">%s</a>`, path, text) }

// Serve completes the page and sends it.
func (p *Page) Serve(w http.ResponseWriter) {
	p.Add("</body>\n</html>\n")
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = w.Write(p.body.Bytes())
}
