package object

import (
	"strings"
	"testing"
)

func TestLeaves(t *testing.T) {
	const data = `{"apiVersion":"v1","data":{"a.b":"x\ny","":"empty","<":1}, "spec" : {"n":-1.5e3,"on":true,"none":null,"list":[{"name":"a"},[],["b",2],{}],"skipped":{"x":["}",1]}},"metadata":{}}`
	const want = `apiVersion=v1
data[a.b]=x
y
data[]=empty
data.<=1
spec.n=-1.5e3
spec.list[0].name=a
spec.list[2][0]=b
spec.list[2][1]=2
`
	visit := func(data string, most int) (string, error) {
		var b strings.Builder
		err := Leaves([]byte(data), func(p Path) bool { return p[len(p)-1].Key != "skipped" }, func(p Path, value string) bool {
			b.WriteString(p.String() + "=" + value + "\n")
			most--
			return most != 0
		})
		return b.String(), err
	}
	if got, err := visit(data, 0); err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
	if got, err := visit(data, 2); err != nil || got != "apiVersion=v1\ndata[a.b]=x\ny\n" {
		t.Errorf("the first two leaves: %v\n%s", err, got)
	}
	for n := range len(data) {
		if _, err := visit(data[:n], 0); err == nil {
			t.Errorf("no error for the first %d bytes", n)
		}
	}
	for _, data := range []string{`{"a":}`, `{"a"}`, `{,}`, `[}`, `{]`, `{"a":[1 2]}`} {
		if _, err := visit(data, 0); err == nil {
			t.Errorf("no error for %s", data)
		}
	}
}
