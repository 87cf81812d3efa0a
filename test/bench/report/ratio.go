// Package report stores measurements, compares them pair by pair, and writes the page and the
// pictures. It measures nothing.
package report

import (
	"slices"
	"time"

	"github.com/anykind/anykind/test/bench/row"
)

// Results are the input of the page. They are stored as JSON, so that one row can be measured again
// without the others.
type Results struct {
	Rows   []Measured
	Curves []Plotted
}

// A Measured is a row with its rounds.
type Measured struct {
	row.Row
	Scenario string // its title
	About    string `json:",omitempty"`
	How      Circumstances
	Pairs    []Pair
	Skipped  string   `json:",omitempty"` // reason for missing values
	Notes    []string `json:",omitempty"`
}

// Circumstances describe the environment of a measurement.
type Circumstances struct {
	When     time.Time
	Mode     string
	Command  string
	Machine  string
	Versions string
	Load     string // load of the machine before the run
}

// A Pair is two consecutive runs, one of each server.
type Pair struct {
	AnykindFirst bool
	Anykind      *row.Value
	Reference    *row.Value
}

// A Plotted is a measured curve.
type Plotted struct {
	row.Row
	Scenario     string
	Along, Shape string
	How          Circumstances
	Anykind      []row.Point
	Reference    []row.Point
	Notes        []string `json:",omitempty"`
}

// A Ratio is the factor by which anykind is better, over the pairs.
type Ratio struct {
	Median, Least, Most float64
	Pairs               int
}

// Ratio compares pair by pair. Above 1 anykind is better, whether a higher or a lower value is better.
// An incomplete pair does not count.
func (m *Measured) Ratio() Ratio {
	var all []float64
	for _, p := range m.Pairs {
		if p.Anykind == nil || p.Reference == nil || p.Anykind.Value <= 0 || p.Reference.Value <= 0 {
			continue
		}
		all = append(all, times(p.Anykind.Value, p.Reference.Value, m.Higher))
	}
	if len(all) == 0 {
		return Ratio{}
	}
	slices.Sort(all)
	return Ratio{median(all), all[0], all[len(all)-1], len(all)}
}

func times(anykind, reference float64, higher bool) float64 {
	if higher {
		return anykind / reference
	}
	return reference / anykind
}

// Medians returns the median of each side by itself.
func (m *Measured) Medians() (anykind, reference float64) {
	var a, r []float64
	for _, p := range m.Pairs {
		if p.Anykind != nil {
			a = append(a, p.Anykind.Value)
		}
		if p.Reference != nil {
			r = append(r, p.Reference.Value)
		}
	}
	slices.Sort(a)
	slices.Sort(r)
	return median(a), median(r)
}

// median returns the median of sorted values, 0 for none.
func median(sorted []float64) float64 {
	n := len(sorted)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// Errors returns the failed requests of each side, in all rounds.
func (m *Measured) Errors() (anykind, reference int, first string) {
	for _, p := range m.Pairs {
		for _, side := range []struct {
			value *row.Value
			count *int
		}{{p.Anykind, &anykind}, {p.Reference, &reference}} {
			if side.value == nil {
				continue
			}
			*side.count += side.value.Errors
			if first == "" {
				first = side.value.FirstError
			}
		}
	}
	return anykind, reference, first
}

// Met reports whether the aim was reached.
func (m *Measured) Met() bool {
	a, _ := m.Medians()
	if m.Higher {
		return a >= m.Aim
	}
	return a <= m.Aim
}

// AimedRatio is the ratio to the reference when the aim was set, 0 if unknown. It is comparable across
// machines and days.
func (m *Measured) AimedRatio() float64 {
	if m.Aim == 0 || m.Stood == 0 {
		return 0
	}
	return times(m.Aim, m.Stood, m.Higher)
}

// Put replaces the values of a row, at its place.
func (r *Results) Put(m Measured) {
	r.Rows = put(r.Rows, m, func(other Measured) bool { return other.ID == m.ID })
}

// PutCurve is Put for curves.
func (r *Results) PutCurve(p Plotted) {
	r.Curves = put(r.Curves, p, func(other Plotted) bool { return other.ID == p.ID })
}

func put[T any](list []T, v T, same func(T) bool) []T {
	if i := slices.IndexFunc(list, same); i >= 0 {
		list[i] = v
		return list
	}
	return append(list, v)
}
