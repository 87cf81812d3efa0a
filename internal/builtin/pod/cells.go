package pod

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/internal/builtin/kind"
)

// TemplateCells returns the cells containers and images of the template at a path, the cell
// selector beside it, and more.
func TemplateCells(path string, more kind.Cells) kind.Cells {
	at := strings.Split(path, ".")
	of := func(name string) func(map[string]any) any {
		return func(obj map[string]any) any {
			var out []string
			for _, c := range kind.List(kind.Tree(obj, at...), "spec", "containers") {
				container, _ := c.(map[string]any)
				out = append(out, kind.Text(container, name))
			}
			return strings.Join(out, ",")
		}
	}
	selector := append(append([]string{}, at[:len(at)-1]...), "selector")
	cells := kind.Cells{
		"containers": of("name"),
		"images":     of("image"),
		"selector": func(obj map[string]any) any {
			return metav1.FormatLabelSelector(kind.ValueOf[metav1.LabelSelector](kind.Tree(obj, selector...)))
		},
	}
	maps.Copy(cells, more)
	return cells
}

// Labels returns a function for the cell of a map of labels.
func Labels(path string) func(map[string]any) any {
	at := strings.Split(path, ".")
	return func(obj map[string]any) any { return labels.FormatLabels(kind.Pairs(obj, at...)) }
}
