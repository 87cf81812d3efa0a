// Package manual writes the man pages of a program that describes its commands: a page in section 1
// for each command. It knows roff, and nothing else of the commands.
package manual

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// A Command describes a command of the program (cmd/anykind/describe.go).
type Command struct {
	Path     string    `json:"path"`
	Usage    string    `json:"usage"`
	Short    string    `json:"short"`
	Long     string    `json:"long"`
	Example  string    `json:"example"`
	Flags    []Flag    `json:"flags"`
	Commands []Command `json:"commands"`
}

// A Flag is a flag of a command.
type Flag struct {
	Section   string `json:"section"` // title of its section, or ""
	Name      string `json:"name"`
	Shorthand string `json:"shorthand"`
	Value     string `json:"value"`
	Default   string `json:"default"`
	Usage     string `json:"usage"`
}

// A Book is a manual with its program and date.
type Book struct {
	Source string // the program and its version, in the foot of each page
	Title  string // in the head of each page
	Date   time.Time
}

// Pages returns the pages of a command and of its subcommands, by file name.
func (b Book) Pages(c Command) map[string][]byte {
	pages := map[string][]byte{}
	b.add(pages, c, "")
	return pages
}

func (b Book) add(pages map[string][]byte, c Command, parent string) {
	pages[name(c.Path)+".1"] = []byte(b.page(c, parent))
	for _, below := range c.Commands {
		b.add(pages, below, c.Path)
	}
}

// name returns the name of a page: anykind-crd-diff.
func name(path string) string { return strings.ReplaceAll(path, " ", "-") }

func (b Book) page(c Command, parent string) string {
	var p strings.Builder
	fmt.Fprintf(&p, ".TH %s 1 %s %s %s\n", quoted(strings.ToUpper(name(c.Path))), b.Date.UTC().Format(time.DateOnly), quoted(b.Source), quoted(b.Title))
	p.WriteString(".nh\n.ad l\n") // no hyphenation: many words are names
	fmt.Fprintf(&p, ".SH NAME\n%s \\- %s\n", text(name(c.Path)), text(c.Short))
	usage := c.Usage
	if len(c.Commands) > 0 {
		usage = c.Path + " COMMAND"
	}
	fmt.Fprintf(&p, ".SH SYNOPSIS\n.B %s\n", text(usage))
	p.WriteString(".SH DESCRIPTION\n")
	p.WriteString(paragraphs(cmp.Or(c.Long, c.Short)))
	if len(c.Commands) > 0 {
		p.WriteString(".SH COMMANDS\n")
		for _, below := range c.Commands {
			fmt.Fprintf(&p, ".TP\n.BR %s (1)\n%s\n", text(name(below.Path)), line(below.Short))
		}
	}
	if len(c.Flags) > 0 {
		p.WriteString(options(c.Flags))
	}
	if c.Example != "" {
		fmt.Fprintf(&p, ".SH EXAMPLES\n%s", verbatim(strings.Split(strings.TrimRight(c.Example, "\n"), "\n")))
	}
	if parent != "" {
		fmt.Fprintf(&p, ".SH SEE ALSO\n.BR %s (1)\n", text(name(parent)))
	}
	return p.String()
}

// options writes flags, with a heading where a section begins. Flags without a section come last, under
// a heading of their own if there are sections.
func options(flags []Flag) string {
	var p strings.Builder
	p.WriteString(".SH OPTIONS\n")
	section := ""
	for _, f := range flags {
		if f.Section != section {
			section = f.Section
			fmt.Fprintf(&p, ".SS %s\n", quoted(cmp.Or(section, "Global")))
		}
		p.WriteString(option(f))
	}
	return p.String()
}

func option(f Flag) string {
	long := `\fB` + text("--"+f.Name) + `\fR`
	if f.Shorthand != "" {
		long = `\fB` + text("-"+f.Shorthand) + `\fR, ` + long
	}
	if f.Value != "" {
		long += ` \fI` + text(f.Value) + `\fR`
	}
	usage := f.Usage
	if f.Default != "" {
		usage += " (default " + f.Default + ")"
	}
	return ".TP\n" + long + "\n" + line(usage) + "\n"
}

// paragraphs formats text for a terminal: a blank line begins a paragraph, and indented text stays
// verbatim.
func paragraphs(s string) string {
	var p strings.Builder
	for i, block := range strings.Split(strings.Trim(s, "\n"), "\n\n") {
		if i > 0 {
			p.WriteString(".PP\n")
		}
		var indented []string
		for l := range strings.Lines(block) {
			l = strings.TrimRight(l, "\n")
			if strings.HasPrefix(l, "  ") || strings.HasPrefix(l, "\t") {
				indented = append(indented, l)
				continue
			}
			p.WriteString(verbatim(indented))
			indented = nil
			p.WriteString(line(l) + "\n")
		}
		p.WriteString(verbatim(indented))
	}
	return p.String()
}

func verbatim(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	var p strings.Builder
	p.WriteString(".RS 2\n.nf\n")
	for _, l := range lines {
		p.WriteString(line(strings.TrimPrefix(l, "  ")) + "\n")
	}
	p.WriteString(".fi\n.RE\n")
	return p.String()
}

// escapes are characters with a different form or a special meaning in roff.
var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

func text(s string) string { return escapes.Replace(s) }

// line escapes text at the start of a line, where a dot would begin a request.
func line(s string) string {
	s = strings.ReplaceAll(text(s), "\n", "\n\\&")
	if strings.HasPrefix(s, ".") {
		return `\&` + s
	}
	return s
}

// quoted returns an argument of a request.
func quoted(s string) string { return `"` + strings.ReplaceAll(text(s), `"`, `\(dq`) + `"` }
