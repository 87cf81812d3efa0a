package builtin

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"
)

const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// row returns the table row of an object from upstream's printers, as JSON.
func (k *Kind) row(t *testing.T, g *printers.HumanReadableGenerator, o Object) (columns []metav1.TableColumnDefinition, cells []any) {
	t.Helper()
	obj, err := k.decode(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() != nil { // a fuzzed object that no validation accepts
			columns, cells = nil, nil
		}
	}()
	table, err := g.GenerateTable(obj, printers.GenerateOptions{Wide: true})
	if err != nil {
		t.Skip(err) // it has the default columns
	}
	data, err := json.Marshal(table.Rows[0].Cells)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cells); err != nil {
		t.Fatal(err)
	}
	return table.ColumnDefinitions, cells
}

// ourRow returns our table row.
func ourRow(t *testing.T, s *Server, k *Kind, name string) (columns []metav1.TableColumnDefinition, cells []any) {
	t.Helper()
	var out Outcome
	w := ask(s.handler, http.MethodGet, k.path(name, ""), asTable, nil, &out)
	if w == nil || w.Code != http.StatusOK {
		t.Fatalf("%s %s: %+v %v", k.ID(), name, out, w)
	}
	var table struct {
		ColumnDefinitions []metav1.TableColumnDefinition
		Rows              []struct{ Cells []any }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &table); err != nil || len(table.Rows) != 1 {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return table.ColumnDefinitions, table.Rows[0].Cells
}

// shownObjects returns objects for tables: those of the corpus, these with one changed field, and
// fuzzed ones. Most are invalid; tables show them nevertheless.
func shownObjects(t *testing.T, k *Kind, corpus []Object, n int) (out []Object) {
	t.Helper()
	add := func(o Object) {
		if obj, err := k.decode(o); err == nil {
			if o, err = k.stored(obj); err == nil {
				out = append(out, o)
			}
		}
	}
	rng := rand.New(rand.NewPCG(*seedFlag, 0))
	for _, o := range corpus {
		old := k.seed(t, o)
		add(old)
		for _, m := range pick(slices.DeleteFunc(k.Mutations(old, 2), namesAnother), max(n/len(corpus), 1), rng) {
			if changed := m.Apply(old); changed != nil {
				add(changed)
			}
		}
	}
	fuzzed, err := k.Fuzzed(n/4, *seedFlag)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range fuzzed {
		add(o)
	}
	return out
}

// TestTables compares the columns and the rows of tables, including wide ones.
func TestTables(t *testing.T) {
	s := NewServer(t, nil)
	kinds, _ := chosen(t, s)
	corpus := readCorpus(t)
	known, err := ReadKnown(true)
	if err != nil {
		t.Fatal(err)
	}
	generator := printers.NewTableGenerator().With(internalversion.AddHandlers)
	for _, k := range kinds {
		if k.scheme != legacyscheme.Scheme || k.dual {
			continue // it has another printer
		}
		t.Run(k.ID(), func(t *testing.T) {
			r := NewReport(k)
			for i, o := range shownObjects(t, k, corpus[k.ID()], plan().N) {
				m := Object{"name": fmt.Sprintf("o%d-%s-%d", len(k.Group), k.Version, i), "creationTimestamp": "2026-01-02T03:04:05Z"}
				if k.Strategy.NamespaceScoped() {
					m["namespace"] = namespaceName
				}
				if was, _ := o["metadata"].(Object); was["labels"] != nil {
					m["labels"] = was["labels"]
				}
				o = set(o, []any{"metadata"}, m).(Object)
				if _, err := s.store(k, o); err != nil {
					t.Fatal(err)
				}
				set := &Set{Kind: k, Operation: "table", from: o}
				r.Add(set, nil, Case{Kind: k, New: o}, true, compareRows(t, s, k, generator, o))
			}
			r.Explain(known)
			decide(t, r)
		})
	}
	reportStale(t, known)
}

// compareRows returns a difference for each cell, and one for all columns.
func compareRows(t *testing.T, s *Server, k *Kind, g *printers.HumanReadableGenerator, o Object) (out []Difference) {
	t.Helper()
	columns, upstream := k.row(t, g, o)
	if columns == nil {
		return nil
	}
	ourColumns, ours := ourRow(t, s, k, nameOf(o))
	for i := range max(len(columns), len(ourColumns)) {
		var a, b metav1.TableColumnDefinition
		if i < len(ourColumns) {
			a = ourColumns[i]
		}
		if i < len(columns) {
			b = columns[i]
		}
		if a != b {
			out = append(out, Difference{fmt.Sprintf("definition of column %d, %s", i, b.Name), fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b)})
		}
	}
	for i := range min(len(upstream), len(ours)) {
		if !reflect.DeepEqual(upstream[i], ours[i]) && !moved(upstream[i], ours[i]) {
			data, _ := json.Marshal(o)
			out = append(out, Difference{"cell of " + columns[i].Name, show(ours[i]) + "\n   object   " + string(data), show(upstream[i])})
		}
	}
	return out
}

// moved reports whether two cells may be the age of one time, read a little later.
func moved(a, b any) bool {
	x, _ := a.(string)
	y, _ := b.(string)
	before, err := time.ParseDuration(x)
	after, err2 := time.ParseDuration(y)
	return err == nil && err2 == nil && (after-before).Abs() <= 5*time.Second
}
