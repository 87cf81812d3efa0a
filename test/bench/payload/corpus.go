package payload

import (
	"fmt"

	"github.com/anykind/anykind/test/corpus"
)

// A Definition is one CustomResourceDefinition of a Corpus.
type Definition struct {
	Body []byte // JSON
	// First is the body of a first object. Validation may reject it. Objects is the path for its
	// POST.
	First   []byte
	Objects string
}

// A Corpus repeats a set of definitions, each time under a different group.
type Corpus struct {
	What string // description
	all  []object
}

// largest is the maximal size of a definition. Definitions that are in the corpus for their size would
// make the mean five times that of a provider.
const largest = 100_000

// ReadCorpus reads the definitions of package corpus up to the maximal size.
func ReadCorpus() (*Corpus, error) {
	all, err := corpus.Definitions()
	if err != nil {
		return nil, err
	}
	c := &Corpus{}
	size := 0
	for _, crd := range all {
		if body := encode(crd); len(body) <= largest {
			size += len(body)
			c.all = append(c.all, crd)
		}
	}
	c.What = fmt.Sprintf("%d definitions of the Gateway API, of cert-manager and like those of a provider, with a mean of %d kB", len(c.all), size/len(c.all)/1000)
	return c, nil
}

// Definition returns the nth definition: one of the corpus, in the nth group.
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
