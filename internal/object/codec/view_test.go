package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/object/view"
)

const stored = `{"apiVersion":"g/v1","kind":"Thing","metadata":{"creationTimestamp":"2000-01-01T00:00:00Z","name":"a","uid":"u"},"spec":{"size":3}}`

func encoded(t testing.TB, json string, revision int64) *object.Encoded {
	t.Helper()
	e, err := object.Scan([]byte(json), revision)
	if err != nil {
		t.Fatal(err)
	}
	return &e
}

// things returns a view of version v2 of a kind with two columns.
func things(f Format) *View {
	return &View{Format: f, APIVersion: "g/v2", Kind: "Thing", ListKind: "ThingList", Columns: NewColumns([]view.Column{
		{Name: "Size", Type: "integer", Description: "how <big>", Priority: 1, Cell: Cell(".spec.size", "integer")},
		AgeColumn(),
	})}
}

func (v *View) cellsOf(t testing.TB, e *object.Encoded) Part {
	return func() ([]byte, error) {
		tree, _, err := Decode(JSON, e.JSON)
		return v.Columns.Cells(tree), err
	}
}

const (
	whole   = `{"apiVersion":"g/v2","kind":"Thing","metadata":{"creationTimestamp":"2000-01-01T00:00:00Z","name":"a","resourceVersion":"7","uid":"u"},"spec":{"size":3}}`
	partial = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"creationTimestamp":"2000-01-01T00:00:00Z","name":"a","resourceVersion":"7","uid":"u"}}`
)

var columnsJSON = func() string {
	name, _ := json.Marshal(metav1.ObjectMeta{}.SwaggerDoc()["name"])
	age, _ := json.Marshal(metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"])
	return `[{"name":"Name","type":"string","format":"name","description":` + string(name) + `,"priority":0},` +
		`{"name":"Size","type":"integer","format":"","description":"how \u003cbig\u003e","priority":1},` +
		`{"name":"Age","type":"date","format":"","description":` + string(age) + `,"priority":0}]`
}()

func TestObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(90 * time.Second)
		for _, tt := range []struct {
			name    string
			f       Format
			include Include
			want    string
		}{
			{"whole", Format{}, 0, whole},
			{"metadata", Format{As: PartialMetadata, Version: "v1"}, 0, partial},
			{"metadata of v1beta1", Format{As: PartialMetadata, Version: "v1beta1"}, 0, strings.Replace(partial, "io/v1", "io/v1beta1", 1)},
			{"table", Format{As: Table, Version: "v1"}, 0,
				`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"columnDefinitions":` + columnsJSON +
					`,"rows":[{"cells":["a",3,"90s"],"object":` + partial + `}]}`},
			{"table without objects", Format{As: Table, Version: "v1beta1"}, IncludeNone,
				`{"kind":"Table","apiVersion":"meta.k8s.io/v1beta1","metadata":{"resourceVersion":"7"},"columnDefinitions":` + columnsJSON +
					`,"rows":[{"cells":["a",3,"90s"],"object":null}]}`},
			{"table with objects", Format{As: Table, Version: "v1"}, IncludeObject,
				`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"columnDefinitions":` + columnsJSON +
					`,"rows":[{"cells":["a",3,"90s"],"object":` + whole + `}]}`},
		} {
			v, e := things(tt.f), encoded(t, stored, 7)
			v.Include = tt.include
			got, err := v.Render(e, v.cellsOf(t, e))
			if err != nil || string(got) != tt.want+"\n" {
				t.Errorf("%s: %v\n got %s\nwant %s", tt.name, err, got, tt.want)
			}
		}
	})
}

func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name  string
			f     Format
			count int
			meta  ListMeta
			want  string
		}{
			{"empty", Format{}, 0, ListMeta{ResourceVersion: 9},
				`{"apiVersion":"g/v2","items":[],"kind":"ThingList","metadata":{"continue":"","resourceVersion":"9"}}`},
			{"page", Format{}, 2, ListMeta{ResourceVersion: 9, Continue: "x", RemainingItemCount: new(int64(3))},
				`{"apiVersion":"g/v2","items":[` + whole + `,` + whole + `],"kind":"ThingList","metadata":{"continue":"x","remainingItemCount":3,"resourceVersion":"9"}}`},
			{"metadata", Format{As: PartialMetadataList, Version: "v1"}, 2, ListMeta{ResourceVersion: 9},
				`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":[` + partial + `,` + partial + `]}`},
			{"no metadata", Format{As: PartialMetadataList, Version: "v1"}, 0, ListMeta{ResourceVersion: 9},
				`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":null}`},
			{"table", Format{As: Table, Version: "v1"}, 2, ListMeta{ResourceVersion: 9, Continue: "x"},
				`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9","continue":"x"},"columnDefinitions":` + columnsJSON +
					`,"rows":[{"cells":["a",3,"0s"],"object":` + partial + `},{"cells":["a",3,"0s"],"object":` + partial + `}]}`},
			{"empty table", Format{As: Table, Version: "v1"}, 0, ListMeta{ResourceVersion: 9},
				`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"columnDefinitions":` + columnsJSON + `,"rows":[]}`},
		} {
			v, e := things(tt.f), encoded(t, stored, 7)
			var out bytes.Buffer
			l := v.NewList(&out, tt.meta)
			for range tt.count {
				if err := l.Add(e, v.cellsOf(t, e)); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Close(); err != nil || out.String() != tt.want+"\n" {
				t.Errorf("%s: %v\n got %s\nwant %s", tt.name, err, out.String(), tt.want)
			}
		}
	})
}

// Objects and lists of a kind with a Go type begin with kind, apiVersion and metadata, in every
// form.
func TestKindFirst(t *testing.T) {
	const item = `"metadata":{"name":"n","resourceVersion":"7"},"data":{"a":"b"}}`
	const object = `{"kind":"ConfigMap","apiVersion":"v1",` + item
	e := encoded(t, `{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"n"}}`, 7)
	v := configMaps(Whole, "")
	v.Format.Media, v.KindFirst = JSON, true
	var out bytes.Buffer
	l := v.NewList(&out, ListMeta{ResourceVersion: 9, Continue: "x", RemainingItemCount: new(int64(3))})
	if err := errors.Join(l.Add(e, nil), l.Close()); err != nil {
		t.Fatal(err)
	}
	list := `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"x","remainingItemCount":3},"items":[{` + item + "]}\n"
	if out.String() != list {
		t.Errorf("list\n got %s\nwant %s", out.String(), list)
	}
	if got, err := v.Render(e, nil); err != nil || string(got) != object+"\n" {
		t.Errorf("object %s, %v", got, err)
	}
	tree, _, _ := Decode(JSON, e.Append(nil, "v1"))
	if got, err := v.RenderTree(tree); err != nil || string(got) != object+"\n" {
		t.Errorf("tree %s, %v", got, err)
	}
	if got, err := v.AppendFrame(nil, Added, e, nil, false); err != nil || string(got) != `{"type":"ADDED","object":`+object+"}\n" {
		t.Errorf("event %s, %v", got, err)
	}
}

// Items in a list of a kind with bare items have no apiVersion and kind, in every form that names
// them once for all.
func TestBareItems(t *testing.T) {
	e := encoded(t, stored, 7)
	for _, tt := range []struct {
		format Format
		want   int // number of occurrences of the version
	}{{Format{}, 1}, {Format{Media: YAML}, 1}, {Format{As: Table, Version: "v1"}, 2}} {
		v := things(tt.format)
		v.BareItems, v.Include = true, IncludeObject
		var out bytes.Buffer
		l := v.NewList(&out, ListMeta{})
		for range 2 {
			if err := l.Add(e, v.cellsOf(t, e)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), v.APIVersion); got != tt.want {
			t.Errorf("%+v: named %d times: %s", tt.format, got, out.String())
		}
	}
}

// chunks counts writes and records the longest.
type chunks struct{ writes, longest, total int }

func (c *chunks) Write(p []byte) (int, error) {
	c.writes++
	c.longest = max(c.longest, len(p))
	c.total += len(p)
	return len(p), nil
}

// A list of any length is written in chunks, also in YAML and with indentation.
func TestListStreams(t *testing.T) {
	for _, f := range []Format{{}, {Media: YAML}, {Pretty: true}} {
		v, e := things(f), encoded(t, stored, 7)
		var out chunks
		l := v.NewList(&out, ListMeta{})
		for range 10000 {
			l.Add(e, nil)
		}
		if err := l.Close(); err != nil || out.total < 10000*len(whole) || out.writes < 10 || out.longest > listChunk+4*len(whole) {
			t.Errorf("%+v: %v, %+v", f, err, out)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// After an error nothing more is written or computed, and Close returns the error.
func TestListErrors(t *testing.T) {
	v, e := things(Format{}), encoded(t, stored, 7)
	l := v.NewList(broken{}, ListMeta{})
	for range 1000 {
		l.Add(e, nil)
	}
	if err := l.Close(); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}

	v = things(Format{As: Table, Version: "v1"})
	l = v.NewList(io.Discard, ListMeta{ResourceVersion: 9})
	bad := errors.New("no cells")
	if err := l.Add(e, func() ([]byte, error) { return nil, bad }); err != bad {
		t.Error(err)
	}
	if err := l.Close(); err != bad {
		t.Error(err)
	}
}

// YAML and indented JSON have the content of the compact form.
func TestRender(t *testing.T) {
	v, e := things(Format{Media: YAML}), encoded(t, stored, 7)
	var out bytes.Buffer
	l := v.NewList(&out, ListMeta{ResourceVersion: 9})
	l.Add(e, nil)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	want := "apiVersion: g/v2\nitems:\n- apiVersion: g/v2\n  kind: Thing\n  metadata:\n    creationTimestamp: \"2000-01-01T00:00:00Z\"\n" +
		"    name: a\n    resourceVersion: \"7\"\n    uid: u\n  spec:\n    size: 3\nkind: ThingList\nmetadata:\n  continue: \"\"\n  resourceVersion: \"9\"\n"
	if out.String() != want {
		t.Errorf("YAML\n%s\nwant\n%s", out.String(), want)
	}

	got, err := Format{Pretty: true}.Render([]byte(`{"a":{},"b":[1,"\u003c"],"c":[]}`))
	if want := "{\n  \"a\": {},\n  \"b\": [\n    1,\n    \"\\u003c\"\n  ],\n  \"c\": []\n}"; err != nil || string(got) != want {
		t.Errorf("indented\n%s\nwant\n%s", got, want)
	}
}

func TestStatus(t *testing.T) {
	s := status.Of(status.BadRequest("no %s", "<way>"))
	for f, want := range map[Format]string{
		{}:             `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no \u003cway\u003e","reason":"BadRequest","code":400}` + "\n",
		{Pretty: true}: "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \"Failure\",\n  \"message\": \"no \\u003cway\\u003e\",\n  \"reason\": \"BadRequest\",\n  \"code\": 400\n}",
		{Media: YAML}:  "apiVersion: v1\ncode: 400\nkind: Status\nmessage: no <way>\nmetadata: {}\nreason: BadRequest\nstatus: Failure\n",
	} {
		if got := string(f.RenderStatus(s)); got != want {
			t.Errorf("%+v\n got %s\nwant %s", f, got, want)
		}
	}
}

func TestFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := encoded(t, stored, 7)
		table := things(Format{As: Table, Version: "v1"})
		row := `"rows":[{"cells":["a",3,"0s"],"object":` + partial + `}]}}` + "\n"
		for _, tt := range []struct {
			v     *View
			first bool
			want  string
		}{
			{things(Format{}), true, `{"type":"ADDED","object":` + whole + "}\n"},
			{things(Format{As: PartialMetadata, Version: "v1"}), false, `{"type":"ADDED","object":` + partial + "}\n"},
			{table, true, `{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"columnDefinitions":` + columnsJSON + `,` + row},
			{table, false, `{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"columnDefinitions":null,` + row},
		} {
			got, err := tt.v.AppendFrame(nil, Added, e, tt.v.cellsOf(t, e), tt.first)
			if err != nil || string(got) != tt.want {
				t.Errorf("%v\n got %s\nwant %s", err, got, tt.want)
			}
		}
	})
	if got := string(Format{}.AppendErrorFrame(nil, status.Of(status.Expired("too old")))); got !=
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}}`+"\n" {
		t.Error(got)
	}
}

func TestBookmarks(t *testing.T) {
	const annotations = `"annotations":{"k8s.io/initial-events-end":"true"},`
	shown := func(a string) string {
		return `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{` + a + `"resourceVersion":"12"}}`
	}
	table := func(object string) string {
		return `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"12"},"columnDefinitions":null,"rows":[{"cells":["",null,null],"object":` + object + `}]}`
	}
	for _, tt := range []struct {
		f       Format
		include Include
		end     bool
		want    string
	}{
		{Format{}, 0, false, `{"apiVersion":"g/v2","kind":"Thing","metadata":{"resourceVersion":"12"}}`},
		{Format{}, 0, true, `{"apiVersion":"g/v2","kind":"Thing","metadata":{` + annotations + `"resourceVersion":"12"}}`},
		{Format{As: PartialMetadata, Version: "v1"}, 0, true, shown(annotations)},
		{Format{As: Table, Version: "v1"}, 0, false, table(shown(""))},
		{Format{As: Table, Version: "v1"}, IncludeNone, false, table("null")},
		{Format{As: Table, Version: "v1"}, IncludeNone, true, table(shown(annotations))},
	} {
		v := things(tt.f)
		v.Include = tt.include
		if got := string(v.AppendBookmark(nil, 12, tt.end, false)); got != `{"type":"BOOKMARK","object":`+tt.want+"}\n" {
			t.Errorf("\n got %s\nwant %s", got, tt.want)
		}
	}
	// With a Go type, an empty object has the fields that the type always writes.
	v := View{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", New: func() runtime.Object { return &coordinationv1.Lease{} }}
	if got, want := string(v.AppendBookmark(nil, 12, true, false)), `{"type":"BOOKMARK","object":{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{`+
		annotations+`"resourceVersion":"12"},"spec":{}}}`+"\n"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// Output cached under a view's key is valid for every view with that key, at any time.
func TestKey(t *testing.T) {
	if _, ok := things(Format{As: Table, Version: "v1"}).Key(); ok {
		t.Error("a Table may be kept, although ages change")
	}
	seen := map[Key]bool{}
	for _, f := range []Format{{}, {As: PartialMetadata, Version: "v1"}, {As: PartialMetadata, Version: "v1beta1"}} {
		key, ok := things(f).Key()
		if !ok || seen[key] {
			t.Errorf("%+v: %v, %v", f, key, ok)
		}
		seen[key] = true
	}
}

func BenchmarkList5000(b *testing.B) {
	for name, f := range map[string]Format{"whole": {}, "table": {As: Table, Version: "v1"}, "metadata": {As: PartialMetadataList, Version: "v1"}} {
		b.Run(name, func(b *testing.B) {
			v, e := things(f), encoded(b, sample, 7)
			made, _ := v.cellsOf(b, e)()
			cells := func() ([]byte, error) { return made, nil }
			b.ReportAllocs()
			for b.Loop() {
				l := v.NewList(io.Discard, ListMeta{ResourceVersion: 9})
				for range 5000 {
					l.Add(e, cells)
				}
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFrame(b *testing.B) {
	v, e := things(Format{}), encoded(b, sample, 7)
	dst := make([]byte, 0, 4096)
	b.SetBytes(int64(len(sample)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.AppendFrame(dst, Added, e, nil, false); err != nil {
			b.Fatal(err)
		}
	}
}

// A list that is rendered object by object has the bytes of the whole document.
func TestPartedList(t *testing.T) {
	values := []string{
		`"short"`, `"a long text of many words that a renderer may fold when its lines become longer than eighty characters or so, if it folds at all"`,
		`"two\nlines\n"`, `"  leading\n\n  blanks  \n\n"`, `"\ttab: #no"`, `"the-objects"`, `""`, `null`, `1.50`, `1e3`, `[]`, `{}`, `[[],{"a":[{"b":"c"}]}]`,
		`"ünïcode \u2028 \u0007"`, `"yes"`, `"0x1f"`, `{"z":1,"a":{"y":[1,2],"b":"x: y"}}`,
	}
	for _, f := range []Format{{Media: YAML}, {Pretty: true}, {Media: YAML, As: PartialMetadata, Version: "v1"}, {Pretty: true, As: Table, Version: "v1"}, {Media: YAML, As: Table, Version: "v1"}} {
		for n := range 4 {
			var lists [2]bytes.Buffer // rendered, and as compact JSON
			for i, f := range []Format{f, {As: f.As, Version: f.Version}} {
				v := things(f)
				l := v.NewList(&lists[i], ListMeta{ResourceVersion: 9, Continue: "c"})
				for k := range n * 5 {
					doc := fmt.Sprintf(`{"apiVersion":"g/v2","kind":"Thing","metadata":{"name":"a%d","labels":{"k":"v"}},"spec":{"text":%s}}`, k, values[(n+k)%len(values)])
					if err := l.Add(encoded(t, doc, 7), func() ([]byte, error) { return []byte(`["cell",1]`), nil }); err != nil {
						t.Fatal(err)
					}
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			want, err := f.Render(bytes.TrimSuffix(lists[1].Bytes(), []byte("\n")))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(lists[0].Bytes(), want) {
				t.Errorf("%+v of %d objects:\n%s\nwant\n%s", f, n*5, lists[0].Bytes(), want)
			}
		}
	}
}
