package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/anykind/anykind/test/corpus"
)

// A Definition is one of many.
type Definition struct {
	Body []byte // JSON
	// First is the body of a first object, which may well be refused, and Objects
	// the path to post it to.
	First   []byte
	Objects string
}

// A Corpus is definitions that are repeated under groups of their own.
type Corpus struct {
	What string // in words
	all  []object
}

// largest is the size of what is taken from a folder. Definitions that were put
// there for being the largest would make the mean five times that of a provider.
const largest = 100_000

// ReadCorpus reads the definitions below a folder, and makes some up if there is no
// such folder.
func ReadCorpus(folder string) (*Corpus, error) {
	c := &Corpus{}
	size := 0
	all, err := corpus.Definitions(folder, ".")
	for _, crd := range all {
		delete(crd, "status")
		if body := encode(crd); len(body) <= largest {
			size += len(body)
			c.all = append(c.all, crd)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(c.all) == 0:
		c.all = []object{madeUp()}
		c.What = fmt.Sprintf("a definition of %d kB that was made up", len(encode(c.all[0]))/1000)
		return c, nil
	case err != nil:
		return nil, err
	}
	c.What = fmt.Sprintf("%d published definitions with a mean of %d kB", len(c.all), size/len(c.all)/1000)
	return c, nil
}

// madeUp is a definition as large as those of providers are in the mean.
func madeUp() object {
	leaf := object{"type": "string", "description": strings.Repeat("What a field means that has a long explanation. ", 3)}
	fields := object{}
	for i := range 14 {
		inner := object{}
		for j := range 9 {
			inner[fmt.Sprintf("field%d", j)] = leaf
		}
		fields[fmt.Sprintf("part%d", i)] = object{"type": "object", "properties": inner}
	}
	var crd object
	if err := json.Unmarshal(Kind{Group: Group}.wrap(object{"type": "object", "properties": object{"spec": object{"type": "object", "properties": fields}}}), &crd); err != nil {
		panic(err) // it was made here
	}
	return crd
}

// Definition is the nth: one of the corpus in the nth group.
func (c *Corpus) Definition(n int) Definition {
	crd := c.all[n%len(c.all)]
	spec := clone(crd["spec"].(map[string]any))
	metadata := clone(crd["metadata"].(map[string]any))
	group := fmt.Sprintf("g%d.%v", n/len(c.all), spec["group"])
	names := spec["names"].(map[string]any)
	spec["group"] = group
	metadata["name"] = fmt.Sprintf("%v.%s", names["plural"], group)
	version := served(spec)
	path := "/apis/" + group + "/" + version
	if spec["scope"] == "Namespaced" {
		path += "/namespaces/default"
	}
	return Definition{
		Body:    encode(object{"apiVersion": crd["apiVersion"], "kind": crd["kind"], "metadata": metadata, "spec": spec}),
		First:   encode(object{"apiVersion": group + "/" + version, "kind": names["kind"], "metadata": object{"name": "first"}, "spec": object{}}),
		Objects: path + "/" + fmt.Sprint(names["plural"]),
	}
}

func served(spec object) string {
	for _, v := range spec["versions"].([]any) {
		if v := v.(map[string]any); v["served"] == true {
			return fmt.Sprint(v["name"])
		}
	}
	return ""
}

func clone(m object) object {
	out := make(object, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
