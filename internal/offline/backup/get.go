package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/offline/apiclient"
)

// Formats are the formats of Get.
var Formats = []string{"table", "yaml", "json", "name"}

// Get writes objects of a server in a format.
func Get(ctx context.Context, from apiclient.Server, s Selection, format string, out io.Writer) error {
	if format == "table" {
		return s.each(ctx, from, func(k *apiclient.Kind, name string) error { return s.table(ctx, from, k, name, out) })
	}
	first := true
	return s.each(ctx, from, func(k *apiclient.Kind, name string) error {
		objects, err := from.Objects(ctx, s.path(k, name))
		for _, o := range objects {
			if err := write(out, k, o, format, first); err != nil {
				return err
			}
			first = false
		}
		return err
	})
}

func write(out io.Writer, k *apiclient.Kind, o object.Tree, format string, first bool) error {
	switch format {
	case "name":
		_, err := fmt.Fprintln(out, k.Title(o))
		return err
	case "json":
		data, err := json.MarshalIndent(o, "", "    ")
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", data)
		}
		return err
	}
	data, err := yaml.Marshal(o)
	if err == nil && !first {
		_, err = io.WriteString(out, "---\n")
	}
	if err == nil {
		_, err = out.Write(data)
	}
	return err
}

// table writes objects with the columns of kubectl get.
func (s Selection) table(ctx context.Context, from apiclient.Server, k *apiclient.Kind, name string, out io.Writer) error {
	const accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
	var t metav1.Table
	if _, err := from.Do(ctx, apiclient.Request{Method: http.MethodGet, Path: s.path(k, name), Accept: accept}, &t); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	everywhere := k.Namespaced && s.Namespace == ""
	row := func(namespace string, cell func(i int) any) {
		var cells []string
		if everywhere {
			cells = append(cells, namespace)
		}
		for i, c := range t.ColumnDefinitions {
			if c.Priority == 0 {
				cells = append(cells, fmt.Sprint(cell(i)))
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t")) // Flush has the error.
	}
	row("NAMESPACE", func(i int) any { return strings.ToUpper(t.ColumnDefinitions[i].Name) })
	for _, r := range t.Rows {
		var o object.Tree
		if err := json.Unmarshal(r.Object.Raw, &o); err != nil {
			return err
		}
		row(object.Namespace(o), func(i int) any {
			if r.Cells[i] == nil {
				return "<none>"
			}
			return r.Cells[i]
		})
	}
	return w.Flush()
}
