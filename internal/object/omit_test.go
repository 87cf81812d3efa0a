package object

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestOmit(t *testing.T) {
	in := `{"a":{"keep":1,"drop":{"x":[1,{"y":"}"}]}}, "list":[{"drop":1},{"drop":"]","b":[]}, 3],"drop":null,"z":"\"drop\""}`
	want := `{"a":{"keep":1},"list":[{},{"b":[]},3],"drop":null,"z":"\"drop\""}`
	got, err := Omit(nil, []byte(in), func(path []string) bool {
		return slices.Equal(path, []string{"a", "drop"}) || slices.Equal(path, []string{"list", "drop"})
	})
	if err != nil || string(got) != want {
		t.Errorf("Omit = %s, %v\nwant  %s", got, err, want)
	}
	for _, broken := range []string{``, `{"a":[1,`, `{"a":[1 2]}`, `{"a"}`, `[1,]`} {
		if got, err := Omit(nil, []byte(broken), func([]string) bool { return false }); err == nil {
			t.Errorf("Omit(%q) = %s, want an error", broken, got)
		}
	}
}

func TestField(t *testing.T) {
	in := []byte(`{"a":"}", "spec" : {"x":[1,"]"]} ,"z":null}`)
	for field, want := range map[string]string{"spec": `{"x":[1,"]"]}`, "a": `"}"`, "z": "null", "none": ""} {
		if got, err := Field(in, field); err != nil || string(got) != want {
			t.Errorf("Field(%q) = %s, %v, want %s", field, got, err, want)
		}
	}
	if got, err := Field([]byte(`{"a":`), "a"); err == nil {
		t.Errorf("Field of half an object = %s, want an error", got)
	}
}

func TestEach(t *testing.T) {
	in := []byte(`{"a":[{"b":1,"c":{"b":0}}, {"c":2},[{"b":[3,"]"]}], 7],"b":9, "d":{"b":{"x":"}"}},"e":null}`)
	for path, want := range map[string]string{
		"a b": `1 3 "]"`, "b": "9", "d b": `{"x":"}"}`, "e": "null", "e b": "", "none": "", "a": `{"b":1,"c":{"b":0}} {"c":2} {"b":[3,"]"]} 7`,
	} {
		var got []string
		err := Each(in, strings.Fields(path), func(json []byte) error { got = append(got, string(json)); return nil })
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("Each %q: %q, %v, want %s", path, got, err, want)
		}
	}
	for _, broken := range []string{``, `{"a":[1,`, `{"a":[1 2]}`, `{"a"}`, `{"a":[1,]}`} {
		if err := Each([]byte(broken), []string{"a"}, func([]byte) error { return nil }); err == nil {
			t.Errorf("Each of %q is no error", broken)
		}
	}
	wanted := errors.New("enough")
	if err := Each(in, []string{"b"}, func([]byte) error { return wanted }); err != wanted {
		t.Errorf("Each = %v, want what visit returns", err)
	}
}
