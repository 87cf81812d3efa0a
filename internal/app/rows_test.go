package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Table of FlowSchemas is ordered by matching precedence. A list is ordered by name.
func TestFlowSchemaRows(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	c := client(t, a, admin(t, a))
	url := a.URL() + "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
	for name, precedence := range map[string]int{"row-a": 9000, "row-b": 70, "row-c": 800, "row-d": 70} {
		body := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"rows":"yes"}},"spec":{"matchingPrecedence":%d,"priorityLevelConfiguration":{"name":"exempt"}}}`, name, precedence)
		if code, answer := ask(t, c, http.MethodPost, url, "application/json", body); code != http.StatusCreated {
			t.Fatal(code, answer)
		}
	}
	url += "?labelSelector=rows"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var table metav1.Table
	if err := json.NewDecoder(response.Body).Decode(&table); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range table.Rows {
		names = append(names, fmt.Sprint(row.Cells[0]))
	}
	if want := []string{"row-b", "row-d", "row-c", "row-a"}; !slices.Equal(names, want) {
		t.Errorf("rows %q, want %q", names, want)
	}
	_, body := ask(t, c, http.MethodGet, url, "", "")
	var l flowcontrolv1.FlowSchemaList
	if err := json.Unmarshal([]byte(body), &l); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(l.Items, func(a, b flowcontrolv1.FlowSchema) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("a list is not by name")
	}
}
