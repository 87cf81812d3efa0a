package report

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/test/bench/row"
)

func pairs(values ...float64) (all []Pair) {
	for i := 0; i < len(values); i += 2 {
		p := Pair{AnykindFirst: i%4 == 0}
		if values[i] > 0 {
			p.Anykind = &row.Value{Value: values[i]}
		}
		if values[i+1] > 0 {
			p.Reference = &row.Value{Value: values[i+1]}
		}
		all = append(all, p)
	}
	return all
}

// Ratios compare pair by pair. Above 1 anykind is better, whether a higher or a lower value is better.
func TestRatio(t *testing.T) {
	for name, c := range map[string]struct {
		higher bool
		pairs  []Pair
		want   Ratio
	}{
		"more is better":                     {true, pairs(100, 10, 200, 10, 300, 10), Ratio{20, 10, 30, 3}},
		"less is better":                     {false, pairs(10, 100, 10, 200, 10, 300), Ratio{20, 10, 30, 3}},
		"worse is below 1":                   {true, pairs(10, 40), Ratio{0.25, 0.25, 0.25, 1}},
		"worse is below 1, less is better":   {false, pairs(40, 10), Ratio{0.25, 0.25, 0.25, 1}},
		"of an even number, between two":     {true, pairs(10, 10, 30, 10), Ratio{2, 1, 3, 2}},
		"not the ratio of medians":           {true, pairs(10, 1, 100, 100, 1000, 500), Ratio{2, 1, 10, 3}},
		"half a pair does not count":         {true, pairs(10, 10, 1000, 0), Ratio{1, 1, 1, 1}},
		"of nothing there is nothing to say": {true, pairs(10, 0), Ratio{}},
	} {
		t.Run(name, func(t *testing.T) {
			m := Measured{Row: row.Row{Higher: c.higher}, Pairs: c.pairs}
			if got := m.Ratio(); got != c.want {
				t.Errorf("%v, not %v", got, c.want)
			}
		})
	}
}

func TestMet(t *testing.T) {
	for _, c := range []struct {
		higher bool
		value  float64
		want   bool
	}{{true, 99, false}, {true, 100, true}, {true, 101, true}, {false, 99, true}, {false, 100, true}, {false, 101, false}} {
		m := Measured{Row: row.Row{Higher: c.higher, Aim: 100}, Pairs: pairs(c.value, 1)}
		if m.Met() != c.want {
			t.Errorf("%v of 100, higher is better: %v: met is %v", c.value, c.higher, m.Met())
		}
	}
}

// An aim is also a multiple of the reference's value at the time of the aim.
func TestAimedRatio(t *testing.T) {
	for _, c := range []struct {
		row  row.Row
		want string
	}{
		{row.Row{Unit: "/s", Higher: true, Aim: 100, Stood: 20}, "100/s, not met<br>5 times, met"},
		{row.Row{Unit: "/s", Higher: true, Aim: 60, Stood: 5}, "60/s, met<br>12 times, not met"},
		{row.Row{Unit: "/s", Aim: 100, Stood: 500}, "100/s, met<br>5 times, not met"},
		{row.Row{Unit: "/s", Aim: 100}, "100/s, met |"},
	} {
		m := Measured{Row: c.row, Pairs: pairs(60, 10)}
		var b strings.Builder
		if m.line(&b); !strings.Contains(b.String(), c.want) {
			t.Errorf("%+v: the line does not say %q: %s", c.row, c.want, b.String())
		}
	}
}

// The page lists failures: errors with their number and the first of them, skipped scenarios, and
// curves that were cut short.
func TestPageSaysWhatWentWrong(t *testing.T) {
	failing := pairs(100, 50, 100, 50)
	failing[1].Reference.Errors, failing[1].Reference.FirstError = 17, "POST /x: 429 too many"
	r := &Results{}
	r.Put(Measured{Row: row.Row{ID: "create", Title: "create", Unit: "/s", Higher: true, Aim: 90}, Scenario: "A", Pairs: failing})
	r.Put(Measured{Row: row.Row{ID: "list", Title: "list", Unit: "/s", Higher: true, Aim: 900}, Scenario: "A", Pairs: pairs(100, 0), Notes: []string{"reference: out of memory."}})
	r.Put(Measured{Row: row.Row{ID: "count", Title: "count", Unit: "/s"}, Scenario: "B", Pairs: pairs(0, 0), Skipped: "valgrind is not installed"})
	page := r.page()
	for _, want := range []string{
		"create (errors: 0, 17)", "0 requests to anykind and 17 to the reference failed, the first with `POST /x: 429 too many`",
		"**2** (2 to 2)", "90/s, met", "900/s, not met", "not measured", "Given up: reference: out of memory.", "valgrind is not installed",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
}

// A run on a busy machine is marked as such.
func TestPageSaysThatTheMachineWasBusy(t *testing.T) {
	for load, busy := range map[string]bool{"28.53": true, "0.31": false, "unknown": false} {
		c := Circumstances{Load: load}
		if strings.Contains(c.words(), "had other work") != busy {
			t.Errorf("load %s: %s", load, c.words())
		}
	}
}

// A row that is measured again keeps its place; the other rows do not change.
func TestMeasuredAgain(t *testing.T) {
	files := Files{Docs: t.TempDir()}
	r := &Results{}
	for _, id := range []string{"a", "b", "c"} {
		r.Put(Measured{Row: row.Row{ID: id, Title: id}, Scenario: "A", Pairs: pairs(1, 2)})
	}
	if err := files.Write(r); err != nil {
		t.Fatal(err)
	}
	again, err := files.Read()
	if err != nil {
		t.Fatal(err)
	}
	again.Put(Measured{Row: row.Row{ID: "b", Title: "b"}, Scenario: "A", Pairs: pairs(3, 4)})
	var got []float64
	for _, m := range again.Rows {
		a, _ := m.Medians()
		got = append(got, a)
	}
	if len(got) != 3 || got[0] != 1 || got[1] != 3 || got[2] != 1 {
		t.Errorf("values %v", got)
	}
}

// Pictures are XML, and bars are in proportion.
func TestPictures(t *testing.T) {
	files := Files{Docs: t.TempDir()}
	r := &Results{}
	r.Put(Measured{Row: row.Row{ID: "a", Title: "a < b & c", Unit: "/s"}, Scenario: "A", Pairs: pairs(110, 220)})
	r.PutCurve(Plotted{Row: row.Row{ID: "curve", Title: "a < b", Unit: "/s"}, Along: "x & y", Anykind: points(10, 1, 100, 20, 1000, 300), Reference: points(10, 5)})
	if err := files.Write(r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.svg", "curve.svg"} {
		data, err := os.ReadFile(filepath.Join(files.Docs, "benchmarks", name))
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(strings.NewReader(string(data))); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, data)
			}
		}
		if name == "a.svg" && (!strings.Contains(string(data), `width="110.0"`) || !strings.Contains(string(data), `width="220.0"`)) {
			t.Errorf("bars of 110 and 220 are not in proportion: %s", data)
		}
	}
}

func points(values ...float64) (all []row.Point) {
	for i := 0; i < len(values); i += 2 {
		all = append(all, row.Point{At: values[i], Value: row.Value{Value: values[i+1]}})
	}
	return all
}

// Growth is the exponent of a curve.
func TestGrowth(t *testing.T) {
	for want, p := range map[string][]row.Point{
		"grows as n^1.00":  points(10, 5, 1000, 500),
		"grows as n^0.00":  points(10, 5, 1000, 5),
		"grows as n^2.00":  points(10, 1, 100, 100),
		"grows as n^-1.00": points(10, 100, 100, 10),
		"was not measured": points(10, 1),
	} {
		if got := growth(p); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.256: "0.26", 1: "1", 9.5: "9.5", 12.34: "12.3", 20: "20", 999: "999", 1234.5: "1,234", 1234567: "1,234,567"} {
		if got := number(v); got != want {
			t.Errorf("%v is written %s, not %s", v, got, want)
		}
	}
}
