package row

import "testing"

// Each row has a unique ID, for the results and for the names of pictures.
func TestEachRowHasAnIDOfItsOwn(t *testing.T) {
	scenarios, err := Scenarios(Quick(), func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	for _, s := range scenarios {
		rows := s.Rows
		if s.Curve != nil {
			rows = append(rows[:len(rows):len(rows)], s.Curve.Rows...)
		}
		for _, r := range rows {
			if of[r.ID] != "" {
				t.Errorf("%s is in %s and in %s", r.ID, of[r.ID], s.Name)
			}
			of[r.ID] = s.Name
		}
		if s.Sides == nil {
			t.Errorf("%s does not say what it compares", s.Name)
		}
	}
}
