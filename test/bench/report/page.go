package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/anykind/anykind/test/bench/row"
)

// Files are the files of a report.
type Files struct{ Docs string }

func (f Files) results() string { return filepath.Join(f.Docs, "benchmarks", "results.json") }

// Read returns the stored results, or empty ones if there are none.
func (f Files) Read() (*Results, error) {
	r := &Results{}
	data, err := os.ReadFile(f.results())
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	return r, json.Unmarshal(data, r)
}

// Write writes the results, the page and the pictures.
func (f Files) Write(r *Results) error {
	if err := os.MkdirAll(filepath.Join(f.Docs, "benchmarks"), 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	written := map[string]string{
		f.results():                            string(data) + "\n",
		filepath.Join(f.Docs, "benchmarks.md"): r.page(),
	}
	for i := range r.Rows {
		a, k := r.Rows[i].Medians()
		written[f.picture(r.Rows[i].ID)] = bars(a, k, r.Rows[i].Unit)
	}
	for i := range r.Curves {
		written[f.picture(r.Curves[i].ID)] = lines(&r.Curves[i])
	}
	for name, text := range written {
		if text == "" {
			continue
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (f Files) picture(id string) string { return filepath.Join(f.Docs, "benchmarks", id+".svg") }

const preface = `# Speed and size, side by side

This page is written by ` + "`make bench`" + `; do not edit it by hand. Both servers run on the same
machine, one at a time, in turn (A B, B A, …), each with an empty folder on the same disk.

| | anykind | reference |
| --- | --- | --- |
| processes | one | kube-apiserver and etcd, both built from their published modules |
| a write is answered | after fsync of its file | after etcd's fdatasync of its log |
| TLS | 1.3, the same certificate (ECDSA P-256) and token | the same; the connection to etcd has no TLS, which is cheaper |
| user | a member of ` + "`system:masters`" + `, unless a row says otherwise; RBAC | the same |
| flags | the defaults | the defaults, and 8 GB for etcd's file |

The client is ` + "`test/bench/load`" + `. It sends HTTP/2 frames over TLS, with one connection for each
client and one request at a time on each, and shares the machine with the server. Both servers
get the same bytes in the same order; a test checks this. An answer counts if its status is
success and it is as long as its objects must be. Everything else is an error, and the row says
so. Rates are measured after a warm-up of 200 requests on the same connections (4 for lists,
none for what happens once).

Objects have 1.7 kB as stored. Their kind has 23 fields and two CEL rules.

**times** says how many times better anykind is: above 1 it is faster, or smaller. It is the
median of the ratios of the pairs, with the lowest and the highest. **aim** is the goal of the
design, as a value and as a multiple of what the reference reached when the goal was set. Values
depend on the machine and the day (the reference reached 1,150 creates a second then), so compare
multiples. Values are medians; small print is from the first round. "Of processor" is the CPU
time of all processes of the server for each request, as the system counts it. Memory is the
resident memory of all processes together; some seconds after its start, and when it has
become quiet, anykind unmaps what is mapped of its program and is not in use, which then
counts only in the system's cache of files.

`

func (r *Results) page() string {
	var b strings.Builder
	b.WriteString(preface)
	scenario := ""
	for i := range r.Rows {
		m := &r.Rows[i]
		if m.Scenario != scenario {
			scenario = m.Scenario
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", scenario, m.How.words())
			if m.About != "" {
				b.WriteString(m.About + "\n\n")
			}
			b.WriteString("| | anykind | reference | times | aim | |\n| --- | --- | --- | --- | --- | --- |\n")
		}
		m.line(&b)
		if i == len(r.Rows)-1 || r.Rows[i+1].Scenario != scenario {
			r.errors(&b, scenario)
		}
	}
	scenario = ""
	for i := range r.Curves {
		c := &r.Curves[i]
		if c.Scenario != scenario {
			scenario = c.Scenario
			fmt.Fprintf(&b, "\n## As work grows: %s\n\n%s\n%s\n", scenario, c.How.words(), c.Shape)
		}
		c.section(&b)
	}
	return b.String()
}

func (c *Circumstances) words() string {
	text := fmt.Sprintf("%s mode, %s, %s; %s.\n\n    %s\n", c.Mode, c.When.UTC().Format("2006-01-02 15:04"), c.Machine, c.Versions, c.Command)
	if busy, err := strconv.ParseFloat(c.Load, 64); err == nil && busy > 1 {
		text += fmt.Sprintf("\n**The machine had other work** (%s processes ran or waited before): the two can be compared, the values cannot be compared with the aims.\n", c.Load)
	}
	return text
}

// line writes a row of a table.
func (m *Measured) line(b *strings.Builder) {
	if m.Skipped != "" {
		fmt.Fprintf(b, "| %s | %s | | | | |\n", m.Title, m.Skipped)
		return
	}
	a, k := m.Medians()
	said := func(v float64, side func(Pair) *row.Value) string {
		if v == 0 {
			return "not measured"
		}
		text := number(v) + unitOf(m.Unit)
		for _, p := range m.Pairs {
			if s := side(p); s != nil && s.Detail != "" {
				return text + "<br><sub>" + s.Detail + "</sub>"
			}
		}
		return text
	}
	times, aim := "", ""
	if ratio := m.Ratio(); ratio.Pairs > 1 {
		times = fmt.Sprintf("**%s** (%s to %s)", number(ratio.Median), number(ratio.Least), number(ratio.Most))
	} else if ratio.Pairs == 1 {
		times = fmt.Sprintf("**%s** (one pair)", number(ratio.Median))
	}
	if m.Aim > 0 {
		aim = number(m.Aim) + unitOf(m.Unit) + met(m.Met())
	}
	if aimed := m.AimedRatio(); aimed > 0 {
		aim += "<br>" + number(aimed) + " times" + met(m.Ratio().Median >= aimed)
	}
	title := m.Title
	if e1, e2, _ := m.Errors(); e1+e2 > 0 {
		title += fmt.Sprintf(" (errors: %d, %d)", e1, e2)
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | ![](benchmarks/%s.svg) |\n", title,
		said(a, func(p Pair) *row.Value { return p.Anykind }), said(k, func(p Pair) *row.Value { return p.Reference }), times, aim, m.ID)
}

func met(yes bool) string {
	if yes {
		return ", met"
	}
	return ", not met"
}

// errors writes the first error of each row of a section.
func (r *Results) errors(b *strings.Builder, scenario string) {
	none := true
	for i := range r.Rows {
		m := &r.Rows[i]
		if a, k, first := m.Errors(); m.Scenario == scenario && a+k > 0 {
			none = false
			fmt.Fprintf(b, "\n%s: %d requests to anykind and %d to the reference failed, the first with `%s`.\n", m.Title, a, k, strings.ReplaceAll(first, "`", "'"))
		}
	}
	said := map[string]bool{}
	for i := range r.Rows {
		for _, note := range r.Rows[i].Notes {
			if r.Rows[i].Scenario == scenario && r.Rows[i].Skipped == "" && !said[note] {
				said[note] = true
				fmt.Fprintf(b, "\nGiven up: %s\n", note)
			}
		}
	}
	if none {
		b.WriteString("\nNo request failed.\n")
	}
}

// section writes a curve.
func (c *Plotted) section(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %s\n\n![](benchmarks/%s.svg)\n\n| %s | anykind | reference | times |\n| --- | --- | --- | --- |\n", c.Title, c.ID, c.Along)
	at := func(points []row.Point, x float64) (float64, string) {
		for _, p := range points {
			if p.At == x {
				text := number(p.Value.Value) + unitOf(c.Unit)
				if p.Detail != "" {
					text += "<br><sub>" + p.Detail + "</sub>"
				}
				if p.Errors > 0 {
					text += fmt.Sprintf(" (errors: %d)", p.Errors)
				}
				return p.Value.Value, text
			}
		}
		return 0, "not measured"
	}
	longer := c.Anykind
	if len(c.Reference) > len(longer) {
		longer = c.Reference
	}
	for _, p := range longer {
		a, ours := at(c.Anykind, p.At)
		k, theirs := at(c.Reference, p.At)
		ratio := ""
		if a > 0 && k > 0 {
			ratio = number(times(a, k, c.Higher))
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", number(p.At), ours, theirs, ratio)
	}
	fmt.Fprintf(b, "\nFrom end to end: anykind %s, reference %s.\n", growth(c.Anykind), growth(c.Reference))
	for _, note := range c.Notes {
		fmt.Fprintf(b, "\n%s\n", note)
	}
}

// growth is the exponent of a value's growth from the first point to the last.
func growth(points []row.Point) string {
	if len(points) < 2 || points[0].Value.Value <= 0 {
		return "was not measured"
	}
	first, last := points[0], points[len(points)-1]
	power := math.Log(last.Value.Value/first.Value.Value) / math.Log(last.At/first.At)
	return fmt.Sprintf("grows as n^%.2f", power)
}
