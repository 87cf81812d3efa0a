package console

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	k9s      = flag.String("k9s", "", "path of k9s, for TestBeside; it runs in tmux")
	headlamp = flag.String("headlamp", "", "path of headlamp-server, for TestBeside")
	pages    = flag.String("headlamp-pages", "", "directory of the built pages of Headlamp")
	only     = flag.String("questions", "", "regular expression for the questions of TestBeside; without one it does not run")
)

// A result is the way of a program to an answer.
type result struct {
	steps   int // 0: there is none
	seconds float64
}

// A column has the results of a program.
type column struct {
	title   string
	way     func(question) way
	results []result
}

// The console answers thirty everyday questions in the steps that the table says. With -k9s and -headlamp, the two other
// programs answer them for the same server, and a table of all three is printed. make console runs it.
func TestBeside(t *testing.T) {
	OnlyOwn(t)
	if *only == "" {
		t.Skip("-questions . asks all of them")
	}
	f := Start(t)
	const animals = 7000
	shop(t, f, animals)
	secondContext(t, f)
	columns := []*column{{title: "anykind console", way: func(q question) way { return q.console }}}
	programs := []func(t *testing.T) tool{func(t *testing.T) tool { return newConsole(t, f) }}
	if *k9s != "" {
		columns = append(columns, &column{title: "k9s", way: func(q question) way { return q.k9s }})
		programs = append(programs, func(t *testing.T) tool { return newTerminal(t, f, *k9s) })
	}
	if *headlamp != "" {
		columns = append(columns, &column{title: "Headlamp", way: func(q question) way { return q.headlamp }})
		programs = append(programs, func(t *testing.T) tool { return newHeadlamp(t, f, *headlamp, *pages) })
	}
	asked := asked(t)
	for i, c := range columns {
		t.Run(c.title, func(t *testing.T) {
			settle(t, f)
			p := programs[i](t)
			for _, q := range asked {
				t.Run(q.words, func(t *testing.T) { c.results = append(c.results, answer(t, p, c.way(q))) })
			}
		})
	}
	columns = slices.DeleteFunc(columns, func(c *column) bool { return len(c.results) < len(asked) }) // not run, or failed
	t.Log("\n" + table(asked, columns))
}

// asked returns the questions of the flag.
func asked(t *testing.T) (out []question) {
	t.Helper()
	chosen, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range questions() {
		if chosen.MatchString(q.words) {
			out = append(out, q)
		}
	}
	return out
}

// settle undoes the changes of a program.
func settle(t *testing.T, f *Fixture) {
	t.Helper()
	f.Patch(t, shopDeployments+"/api", `{"spec":{"replicas":1,"template":{"metadata":{"annotations":null}}}}`)
	f.Patch(t, "/api/v1/nodes/node", `{"spec":{"unschedulable":null}}`)
	var refused interface{ Reason() string }
	err := f.Do(t.Context(), http.MethodDelete, "/api/v1/namespaces/default/configmaps/fresh", nil, nil)
	if err != nil && !(errors.As(err, &refused) && refused.Reason() == "NotFound") {
		t.Fatal(err)
	}
}

// answer takes the steps of a way, and measures the time until the answer is visible.
func answer(t *testing.T, p tool, w way) result {
	t.Helper()
	if len(w.steps) == 0 {
		return result{}
	}
	p.begin(t)
	var r result
	began := time.Now()
	for _, text := range w.steps {
		s := stepOf(text)
		r.steps += s.actions()
		if s.verb != "await" {
			p.act(t, s)
		} else if err := p.shows(t, []string{s.words}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.shows(t, w.answer); err != nil {
		t.Fatal(err)
	}
	r.seconds = time.Since(began).Seconds()
	return r
}

// table returns the results in Markdown, with their sums.
func table(asked []question, columns []*column) string {
	var b strings.Builder
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	head, line := []string{"question"}, []string{"---"}
	for _, c := range columns {
		head, line = append(head, c.title+": steps", "s"), append(line, "--:", "--:")
	}
	row(head...)
	row(line...)
	for i, q := range asked {
		cells := []string{q.words}
		for _, c := range columns {
			if r := c.results[i]; r.steps > 0 {
				cells = append(cells, fmt.Sprint(r.steps), fmt.Sprintf("%.1f", r.seconds))
			} else {
				cells = append(cells, "–", c.way(q).none)
			}
		}
		row(cells...)
	}
	cells := []string{"answered"}
	for _, c := range columns {
		n := 0
		for _, r := range c.results {
			n += min(r.steps, 1)
		}
		cells = append(cells, fmt.Sprint(n), "")
	}
	row(cells...)
	cells = []string{"the questions that all answer"}
	for _, c := range columns {
		var sum result
		for i, r := range c.results {
			if answered(columns, i) {
				sum.steps += r.steps
				sum.seconds += r.seconds
			}
		}
		cells = append(cells, fmt.Sprint(sum.steps), fmt.Sprintf("%.1f", sum.seconds))
	}
	row(cells...)
	return b.String()
}

// answered reports whether all programs answer a question.
func answered(columns []*column, i int) bool {
	for _, c := range columns {
		if c.results[i].steps == 0 {
			return false
		}
	}
	return true
}
