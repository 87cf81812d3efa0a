package check

import (
	"os"
	"path/filepath"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
)

// chartFile is the file that makes a folder a Helm chart.
const chartFile = "Chart.yaml"

func isChart(folder string) bool { return isFile(filepath.Join(folder, chartFile)) }

// rendered is the source of an object in the output of helm template.
type rendered struct{}

// templateAnnotation has the template of an object in the input of a post-renderer. Helm 4 adds it, and removes it from the
// output.
const templateAnnotation = "postrenderer.helm.sh/postrender-filename"

// templates returns the function that makes the template of Helm the place of an object. The path of the template
// begins with the name of the chart. If the working folder is this chart, the template is in it.
func templates() func(*Document) {
	var chart struct{ Name string }
	text, _ := os.ReadFile(chartFile)
	_ = yaml.Unmarshal(text, &chart)
	return func(d *Document) {
		source := templateOf(d)
		if source == "" {
			return
		}
		d.file, d.source = source, &rendered{}
		if own, ok := strings.CutPrefix(source, chart.Name+"/"); ok && !exists(source) && exists(own) {
			d.file = own
		}
	}
}

// templateOf returns the template that Helm names, in an annotation or in a comment at the beginning, or "".
func templateOf(d *Document) string {
	if source, ok := object.Annotation(d.tree, templateAnnotation); ok {
		return source
	}
	for line := range strings.Lines(string(d.text)) {
		line = strings.TrimSpace(line)
		if source, ok := strings.CutPrefix(line, "# Source: "); ok {
			return source
		}
		if !strings.HasPrefix(line, "#") {
			return ""
		}
	}
	return ""
}

// place sets the line in the template if its text proves it, and the line in the output.
func (*rendered) place(d *Document, _ *yamlv3.Node, _ string, p *Problem) {
	line, column := p.Line, p.Column
	p.Line, p.Column, p.RenderedLine = 0, 0, line
	if !filepath.IsLocal(d.file) {
		return
	}
	template, err := os.ReadFile(d.file)
	if err != nil {
		return
	}
	if found := lineIn(string(template), string(d.text), line-d.line, object.Kind(d.tree)); found > 0 {
		p.Line, p.Column = found, column
	}
}

// lineIn returns the line of a template that is a line of its output, or 0 if that is unsure. It is sure if both
// have the text of the line once, outside of comments of the template, and the document in the template has the kind
// of the object.
func lineIn(template, output string, at int, kind string) int {
	lines := strings.Split(output, "\n")
	if at >= len(lines) {
		return 0
	}
	own := "\n" + lines[at] + "\n"
	template, output = "\n"+template+"\n", "\n"+output+"\n"
	found := strings.Index(template, own)
	if found < 0 || found != strings.LastIndex(template, own) || strings.Index(output, own) != strings.LastIndex(output, own) {
		return 0
	}
	before := template[:found+1]
	document, _, _ := strings.Cut(template[strings.LastIndex(before, "\n---")+1:], "\n---")
	if strings.LastIndex(before, "/*") > strings.LastIndex(before, "*/") || !strings.Contains(document+"\n", "\nkind: "+kind+"\n") {
		return 0
	}
	return strings.Count(before, "\n")
}
