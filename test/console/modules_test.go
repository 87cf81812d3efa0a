package console

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"
)

// words are parts of keys and values, with all that YAML has a meaning for.
var words = []string{"a", "name", "x-y", "a/b.c", "true", "no", "null", "~", "1", "-1.5", "0x1F", "1e3", "0o17", ".inf", "2026-11-28", "a: b", "a #b", "#c", "- d", "[e]", "{f}", "*g", "&h", "!i",
	"|", ">", "%j", "@k", "`l", "'m'", `"n"`, "", " ", " lead", "trail ", "two\nlines", "two\nlines\n", "\nfirst", "  indented\nlines", "tab\there", "Ünïcode", "emoji 😀", "nul\u0000", "bell\u0007", "line\u2028sep", "\\", "?", "=", "<<", "y", "on", "a:", ":a", "1:30", "12_000", "0777", "trailing\n\n", "0b11", "0x_1f", "0o1_7", "1e5_0", "10.0.0.1", "7c5-ab", "+1", ".5"}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(10); {
	case depth > 0 && n < 4:
		m := map[string]any{}
		for range r.IntN(4) {
			m[words[r.IntN(len(words))]] = randomValue(r, depth-1)
		}
		return m
	case depth > 0 && n < 6:
		l := make([]any, r.IntN(4))
		for i := range l {
			l[i] = randomValue(r, depth-1)
		}
		return l
	case n == 6:
		return float64(r.IntN(2000) - 1000)
	case n == 7:
		return []any{true, false, nil}[r.IntN(3)]
	}
	return words[r.IntN(len(words))]
}

// The YAML of the pages says what the object says: a parser of YAML reads the same values.
func TestWrittenYAML(t *testing.T) {
	f := Start(t)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	r := rand.New(rand.NewPCG(1, 2))
	n := 3000
	if testing.Short() {
		n = 500
	}
	var objects []any
	for range n {
		objects = append(objects, map[string]any{"apiVersion": "v1", "metadata": map[string]any{"name": "a"}, "spec": randomValue(r, 4)})
	}
	data, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	texts := Eval[[]string](p, fmt.Sprintf(`import("/console/yaml.js").then(y => %s.map(o => y.toText(o)))`, script(data)))
	for i, text := range texts {
		var got any
		if err := yaml.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%v\n%s\nof %v", err, text, objects[i])
		}
		if want := objects[i]; !reflect.DeepEqual(got, want) {
			t.Fatalf("read back as\n%v, want\n%v\n%s", got, want, text)
		}
	}
}

// script writes JSON as an expression of JavaScript.
func script(data []byte) string {
	return strings.NewReplacer("\u2028", `\u2028`, "\u2029", `\u2029`).Replace(string(data))
}

// The paths that the pages find in a text, to place errors, are those that the text was written with.
func TestPathsOfLines(t *testing.T) {
	f := Start(t)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	r := rand.New(rand.NewPCG(3, 4))
	var objects []any
	for range 500 {
		objects = append(objects, map[string]any{"apiVersion": "v1", "spec": randomValue(r, 5)})
	}
	data, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	wrong := Eval[[]string](p, fmt.Sprintf(`import("/console/yaml.js").then(y => %s.flatMap(o => {
		const lines = y.write(o), paths = y.paths(lines.map(l => l.text).join("\n"));
		// The first line of an element of a list has the path of its first field, or of the element itself.
		return lines.flatMap((l, i) => l.text && (l.leaf || /:$/.test(l.text)) && JSON.stringify(paths[i]) !== JSON.stringify(l.path) ? [JSON.stringify(paths[i]) + " for " + JSON.stringify(l.path) + " in line " + i + " of\n" + y.toText(o)] : [])
	}).slice(0, 3))`, script(data)))
	for _, w := range wrong {
		t.Error(w)
	}
	for field, want := range map[string]string{
		`spec.a[0].b`:              `["spec","a",0,"b"]`,
		`metadata.labels[a/b.c]`:   `["metadata","labels","a/b.c"]`,
		`spec.env[name="a.b"].c`:   `["spec","env","name=\"a.b\"","c"]`,
		`metadata.annotations[""]`: `["metadata","annotations",""]`,
	} {
		if got := Eval[string](p, fmt.Sprintf(`import("/console/yaml.js").then(y => JSON.stringify(y.fieldPath(%q)))`, field)); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
}

// A store of rows has the same rows in the same order as a list that is filtered and sorted as a whole, after any
// history of changes.
func TestStoreOfRows(t *testing.T) {
	f := Start(t)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	got := Eval[string](p, `import("/console/store.js").then(({Store, sortable}) => {
		let seed = 7;
		const random = n => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
		for (let round = 0; round < 60; round++) {
			const s = new Store(), model = new Map();
			let keep = 10, down = false;
			const arrange = () => s.arrange({matches: r => r.size % keep !== 0, keyOf: r => sortable(r.size), down});
			arrange();
			for (let step = 0; step < 300; step++) {
				const id = "i" + random(60);
				switch (random(9)) {
				case 0: s.remove(id); model.delete(id); break;
				case 1: if (random(5) === 0) { keep = 2 + random(9); down = !down; arrange(); } break;
				case 2: s.settle(); break;
				default: const row = {id, name: id, size: random(5) ? random(40) : random(9) + "/9"}; s.put(row); model.set(id, row);
				}
			}
			s.settle();
			const want = [...model.values()].filter(r => r.size % keep !== 0).map(r => ({...r, key: sortable(r.size)})).sort(s.compare).map(r => r.id).join();
			if (s.shown.map(r => r.id).join() !== want) return "round " + round + ": " + s.shown.map(r => r.id) + " want " + want;
		}
		for (const order of [[-20, -5, 0, 3, 20, 100], ["1/5", "3/5", "20/21"], ["59s", "5m", "1h", "2d3h", "1y"], ["", "a", "b"]]) {
			const keys = order.map(sortable);
			if (keys.toSorted().join() !== keys.join()) return "order of " + order;
		}
		return "same";
	})`)
	if got != "same" {
		t.Error(got)
	}
}

// Ages are those that kubectl prints.
func TestAges(t *testing.T) {
	f := Start(t)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	var seconds []int64
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		seconds = append(seconds, r.Int64N(1<<r.IntN(30)+1))
	}
	data, err := json.Marshal(seconds)
	if err != nil {
		t.Fatal(err)
	}
	got := Eval[[]string](p, fmt.Sprintf(`import("/console/dom.js").then(d => %s.map(s => d.age(new Date(0).toISOString(), s * 1000)))`, data))
	for i, s := range seconds {
		if want := duration.HumanDuration(time.Duration(s) * time.Second); got[i] != want {
			t.Errorf("%d s is %q, want %q", s, got[i], want)
		}
	}
}
