package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/anykind/anykind/test/bench/row"
)

// The colours are distinct on white, on black and in grey.
const (
	ours   = "#1f77b4"
	theirs = "#d98a3d"
	ink    = "#808080"
)

// bars draws two bars, in proportion.
func bars(anykind, reference float64, unit string) string {
	most := max(anykind, reference)
	if most <= 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(open(320, 36))
	for i, side := range []struct {
		value  float64
		colour string
	}{{anykind, ours}, {reference, theirs}} {
		y := 2 + i*17
		if side.value <= 0 {
			fmt.Fprintf(&b, `<text x="4" y="%d" fill="%s">not measured</text>`+"\n", y+11, ink)
			continue
		}
		width := max(1, side.value/most*220)
		fmt.Fprintf(&b, `<rect x="0" y="%d" width="%.1f" height="14" fill="%s"/>`+"\n", y, width, side.colour)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="%s">%s</text>`+"\n", width+5, y+11, ink, escape(number(side.value)+unitOf(unit)))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func open(width, height int) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", width, height, width, height)
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// A plot is a frame with two logarithmic axes.
type plot struct {
	strings.Builder
	x0, x1, y0, y1 float64 // logarithms
}

const (
	plotWidth, plotHeight = 480, 280
	left, right           = 62, 80
	top, bottom           = 28, 40
)

func (p *plot) x(v float64) float64 {
	return left + (math.Log10(v)-p.x0)/(p.x1-p.x0)*(plotWidth-left-right)
}

func (p *plot) y(v float64) float64 {
	return plotHeight - bottom - (math.Log10(v)-p.y0)/(p.y1-p.y0)*(plotHeight-top-bottom)
}

// lines draws a curve for each side.
func lines(c *Plotted) string {
	p := &plot{x0: math.Inf(1), x1: math.Inf(-1), y0: math.Inf(1), y1: math.Inf(-1)}
	for _, points := range [][]row.Point{c.Anykind, c.Reference} {
		for _, at := range points {
			if at.At <= 0 || at.Value.Value <= 0 {
				continue
			}
			p.x0, p.x1 = min(p.x0, math.Log10(at.At)), max(p.x1, math.Log10(at.At))
			p.y0, p.y1 = min(p.y0, math.Floor(math.Log10(at.Value.Value))), max(p.y1, math.Ceil(math.Log10(at.Value.Value)))
		}
	}
	if p.x1 <= p.x0 {
		return "" // one point is no curve
	}
	if p.y1 == p.y0 {
		p.y1++
	}
	p.WriteString(open(plotWidth, plotHeight))
	fmt.Fprintf(p, `<text x="%d" y="16" fill="%s" font-size="13">%s (%s)</text>`+"\n", left, ink, escape(c.Title), escape(strings.TrimSpace(c.Unit)))
	p.grid(c.Along)
	p.line(c.Anykind, ours, "anykind")
	p.line(c.Reference, theirs, "reference")
	p.WriteString("</svg>\n")
	return p.String()
}

// grid draws the powers of ten.
func (p *plot) grid(along string) {
	for e := p.y0; e <= p.y1; e++ {
		v := math.Pow(10, e)
		fmt.Fprintf(p, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-opacity="0.3"/>`+"\n", left, p.y(v), plotWidth-right, p.y(v), ink)
		fmt.Fprintf(p, `<text x="%d" y="%.1f" fill="%s" text-anchor="end">%s</text>`+"\n", left-6, p.y(v)+4, ink, number(v))
	}
	for e := math.Ceil(p.x0); e <= math.Floor(p.x1); e++ {
		v := math.Pow(10, e)
		fmt.Fprintf(p, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-opacity="0.3"/>`+"\n", p.x(v), top, p.x(v), plotHeight-bottom, ink)
		fmt.Fprintf(p, `<text x="%.1f" y="%d" fill="%s" text-anchor="middle">%s</text>`+"\n", p.x(v), plotHeight-bottom+15, ink, number(v))
	}
	fmt.Fprintf(p, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", left, plotHeight-8, ink, escape(along))
}

func (p *plot) line(points []row.Point, colour, name string) {
	var at []string
	var x, y float64
	for _, point := range points {
		if point.At <= 0 || point.Value.Value <= 0 {
			continue
		}
		x, y = p.x(point.At), p.y(point.Value.Value)
		at = append(at, fmt.Sprintf("%.1f,%.1f", x, y))
		fmt.Fprintf(p, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x, y, colour)
	}
	if len(at) == 0 {
		return
	}
	fmt.Fprintf(p, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(at, " "), colour)
	fmt.Fprintf(p, `<text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n", x+7, y+4, colour, name)
}

// number formats three significant digits, and thousands with commas.
func number(v float64) string {
	switch {
	case v >= 100:
		whole := fmt.Sprintf("%.0f", v)
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "," + whole[i:]
		}
		return whole
	case v >= 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	case v > 0:
		text := fmt.Sprintf("%.2f", v)
		if strings.Contains(text, ".") {
			text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		}
		return text
	}
	return "0"
}

// unitOf returns the unit as a suffix of a number.
func unitOf(unit string) string {
	if strings.HasPrefix(unit, "/") || strings.HasPrefix(unit, " ") {
		return unit
	}
	return " " + unit
}
