package object

import (
	"slices"
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
