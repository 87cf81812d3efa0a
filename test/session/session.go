// Package session draws the terminal session of the README: docs/session.svg.
//
// The picture shows a real run: the test starts the program, runs kubectl, and compares the output
// with the picture. Run go test ./session -update to draw it again.
package session

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// The measures of the picture, in pixels.
const (
	width      = 820
	lineHeight = 20
	margin     = 20
	titleBar   = 30
)

// SVG draws a terminal with these lines. A line that begins with "$ " is a command,
// one that begins with "# " is a comment.
func SVG(lines []string) string {
	var b strings.Builder
	height := titleBar + 2*margin + lineHeight*len(lines)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="a session with anykind and kubectl">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="#1e2127"/>`+"\n", width, height)
	for i, color := range []string{"#e06c75", "#e5c07b", "#98c379"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="%d" r="5" fill="%s"/>`+"\n", margin+i*18, titleBar/2+3, color)
	}
	b.WriteString(`<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" fill="#d7dae0" xml:space="preserve">` + "\n")
	for i, line := range lines {
		if line == "" {
			continue
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d"%s>%s</text>`+"\n", margin, titleBar+margin+lineHeight*i, fill(line), escape(line))
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// fill returns the color of a line, "" for the default.
func fill(line string) string {
	switch {
	case strings.HasPrefix(line, "$ "):
		return ` fill="#61afef" font-weight="bold"`
	case strings.HasPrefix(line, "# "):
		return ` fill="#7f848e"`
	default:
		return ""
	}
}

func escape(text string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(text)) // writes to a Builder do not fail
	return b.String()
}
