package codec

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/view"
)

const cellObject = `{"metadata":{"name":"x","labels":{"a.b/c":"label"}},"spec":{"s":"x","i":3,"f":1.5,"big":1000000.5,"whole":1e3,"b":true,"null":null,
	"o":{"k":[1,"two",null,"<"]},"l":["a","b","c"],"mixed":[null,"é"],"empty":[],"date":"2020-01-01T00:00:00Z","bad":"nope","none":"",
	"conditions":[{"type":"Synced","status":"False"},{"type":"Ready","status":"True"}],"with-dash_1":"d"}}`

// The cells of kube-apiserver.
func TestCell(t *testing.T) {
	tree, _, err := Decode(JSON, []byte(cellObject))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path, typ string
		want      any
	}{
		{".spec.s", "string", "x"},
		{".spec.i", "string", "3"},
		{".spec.f", "string", "1.5"},
		{".spec.big", "string", "1.0000005e+06"},
		{".spec.whole", "string", "1000"},
		{".spec.b", "string", "true"},
		{".spec.null", "string", "<no value>"},
		{".spec.o", "string", `{"k":[1,"two",null,"\u003c"]}`},
		{".spec.l", "string", `["a","b","c"]`},
		{".spec.missing", "string", nil},
		{".spec.s.deeper", "string", nil},
		{".spec.null.deeper", "string", nil},
		{".missing.deeper", "string", nil},
		{".spec.with-dash_1", "string", "d"},
		{".spec['s']", "string", "x"},
		{".spec.l[0]", "string", "a"},
		{".spec.l[-1]", "string", "c"},
		{".spec.l[7]", "string", nil},
		{".spec.l[*]", "string", "a"},
		{".spec.empty[*]", "string", nil},
		{".spec.mixed[0]", "string", "<no value>"},
		{".spec.mixed[1]", "string", "é"},
		{`.metadata.labels.a\.b/c`, "string", "label"},
		{`.spec.conditions[?(@.type=="Ready")].status`, "string", "True"},
		{`.spec.conditions[?(@.type=="Other")].status`, "string", nil},
		{"..name", "string", "x"},

		{".spec.i", "integer", int64(3)},
		{".spec.f", "integer", int64(1)},
		{".spec.s", "integer", nil},
		{".spec.b", "integer", nil},
		{".spec.null", "integer", nil},
		{".spec.i", "number", 3.0},
		{".spec.f", "number", 1.5},
		{".spec.s", "number", nil},
		{".spec.b", "boolean", true},
		{".spec.i", "boolean", nil},
		{".spec.date", "date", view.Age("2020-01-01T00:00:00Z")},
		{".spec.i", "date", nil},
		{".spec.null", "date", nil},
		{".spec.s", "unheard-of", nil},
		{".spec.l[", "string", nil},
	} {
		if got := Cell(tt.path, tt.typ)(tree); got != tt.want {
			t.Errorf("%s as %s: %#v, want %#v", tt.path, tt.typ, got, tt.want)
		}
	}
}

// A plain path is evaluated without the library, with the same result.
func TestPlainPathIsTheLibrary(t *testing.T) {
	tree, _, err := Decode(JSON, []byte(cellObject))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{".spec.s", ".spec.i", ".spec.f", ".spec.big", ".spec.b", ".spec.null", ".spec.o", ".spec.l", ".spec.empty",
		".spec.missing", ".spec.s.x", ".spec.null.x", ".spec.l.x", ".spec", ".metadata.name", ".x.y.z", ".spec.with-dash_1"} {
		if _, ok := plainPath(path); !ok {
			t.Errorf("%s is not plain", path)
		}
		for _, typ := range []string{"string", "integer", "number", "boolean", "date"} {
			if got, want := Cell(path, typ)(tree), found(parsePath(path))(typ, tree); got != want {
				t.Errorf("%s as %s: %#v, the library finds %#v", path, typ, got, want)
			}
		}
	}
	for _, path := range []string{"", ".", "spec", ".spec.", "..spec", ".spec[0]", ".spec.*", `.a\.b`, ".spec x", ".é", ".{}"} {
		if _, ok := plainPath(path); ok {
			t.Errorf("%q is plain", path)
		}
	}
}

func TestCheckPath(t *testing.T) {
	for _, path := range []string{".spec.size", ".spec['a']", `.status.conditions[?(@.type=="Ready")].status`} {
		if err := CheckPath(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{".spec[", ".spec[a]", ".spec.x}{[", "$%"} {
		if err := CheckPath(path); err == nil || err.Error() != `unrecognized column definition "`+path+`"` {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Cells are cached; ages are computed when a Table is written.
func TestAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		columns := NewColumns([]view.Column{
			AgeColumn(),
			{Name: "Twice", Type: "date", Cell: Cell(".spec.when", "date")},
			{Name: "Fixed", Type: "string", Cell: func(map[string]any) any { return view.Age("") }},
			{Name: "Text", Type: "string", Cell: func(map[string]any) any {
				return view.TextWithAge{Before: "<3> (", At: "2000-01-01T00:00:00Z", After: " ago)"}
			}},
		}).WithConditions(func(map[string]any) []metav1.TableRowCondition {
			return []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: metav1.ConditionTrue}}
		})
		cells := columns.Cells(object.Tree{
			"metadata": object.Tree{"name": "a\x00b", "creationTimestamp": "2000-01-01T00:00:00Z"},
			"spec":     object.Tree{"when": "2000-01-01T00:01:00+00:00"},
		})
		for _, tt := range []struct {
			wait time.Duration
			want string
		}{
			{0, `["a\u0000b","0s","\u003cinvalid\u003e","\u003cunknown\u003e","\u003c3\u003e (0s ago)"]`},
			{59 * time.Second, `["a\u0000b","59s","0s","\u003cunknown\u003e","\u003c3\u003e (59s ago)"]`},
			{time.Hour, `["a\u0000b","60m","59m","\u003cunknown\u003e","\u003c3\u003e (60m ago)"]`},
			{24 * time.Hour, `["a\u0000b","25h","24h","\u003cunknown\u003e","\u003c3\u003e (25h ago)"]`},
		} {
			time.Sleep(tt.wait)
			const completed = `,"conditions":[{"type":"Completed","status":"True"}]`
			if got := string(appendCells(nil, cells)); got != tt.want+completed {
				t.Errorf("after another %v: %s, want %s", tt.wait, got, tt.want+completed)
			}
		}
	})
	for s, want := range map[string]string{
		"": `"\u003cunknown\u003e"`, "null": `"\u003cunknown\u003e"`, "nope": `"\u003cinvalid\u003e"`, "2020-01-01": `"\u003cinvalid\u003e"`, "\x00": `"\u003cinvalid\u003e"`,
		"0001-01-01T00:00:00Z": `"\u003cunknown\u003e"`,
	} {
		if got := string(appendCells(nil, appendAge(nil, s))); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func BenchmarkCells(b *testing.B) {
	tree, _, err := Decode(JSON, []byte(cellObject))
	if err != nil {
		b.Fatal(err)
	}
	for name, path := range map[string]string{"plain": ".spec.s", "filter": `.spec.conditions[?(@.type=="Ready")].status`} {
		b.Run(name, func(b *testing.B) {
			columns := NewColumns([]view.Column{{Cell: Cell(path, "string")}, AgeColumn()})
			b.ReportAllocs()
			for b.Loop() {
				columns.Cells(tree)
			}
		})
	}
}
