//go:build !race

// The race detector multiplies the processor time of large definitions by ten. The test defines one at a time.

package crd_test

import "testing"

// Large, deeply nested definitions are accepted and served. test/publish does the same with published
// ones.
func TestProvider(t *testing.T) {
	for i, text := range provider(t) {
		if testing.Short() && i%8 > 0 {
			continue
		}
		s := start(t)
		c := s.define(text)
		d := s.target(c.Spec.Group, c.Spec.Names.Plural, "", "").Definition
		for _, v := range d.Versions {
			if model := v.Schema.Model(); model.Name == "" {
				t.Errorf("%s %s has no model", c.Name, v.Name)
			}
		}
		s.stop()
	}
}
