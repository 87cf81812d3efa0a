// Package crdtest generates CustomResourceDefinitions for tests and benchmarks: many, large, deeply
// nested, and reproducible.
//
// They have the shape of those of a cloud provider: desired fields, the same fields again for
// initialization and as observed, references to other objects, CEL rules, and long descriptions. All
// names and words are made up. The package does not depend on the server, so test modules may use it
// as well.
package crdtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

type (
	object = map[string]any
	array  = []any
)

// Provider returns the definitions of a provider: forty of typical size, from 5 kB to 90 kB of JSON,
// and twelve large ones in two versions each, up to 700 kB.
func Provider() []map[string]any {
	const everyday, large = 40, 12
	var all []map[string]any
	for i := range everyday {
		all = append(all, Definition(i, 4+i*i/25, 1+i%5/4))
	}
	for i := range large {
		all = append(all, Definition(everyday+i, 80+i*50, 2))
	}
	return all
}

// Definition returns the nth definition, with a number of desired fields. Observed fields and
// references make it about four times as many properties in each version.
func Definition(n, fields, versions int) map[string]any {
	m := maker{rand.New(rand.NewPCG(uint64(n), uint64(fields)))}
	kind := kindName(n)
	group := nouns[n%20] + ".cloud.example.com"
	scope := "Cluster"
	if n%3 == 0 {
		group, scope = "m."+group, "Namespaced"
	}
	wanted := m.fields(fields, 5)
	var list array
	for v := range versions {
		last := v == versions-1
		list = append(list, object{
			"name": fmt.Sprintf("v1beta%d", v+1), "served": true, "storage": last,
			"subresources":             object{"status": object{}},
			"additionalPrinterColumns": columns(),
			"schema":                   object{"openAPIV3Schema": root(kind, m.sentence(), wanted, writer{lists: !last})},
		})
	}
	plural := strings.ToLower(kind) + "s"
	return object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": plural + "." + group},
		"spec": object{
			"group": group, "scope": scope, "versions": list,
			"names": object{
				"plural": plural, "singular": strings.ToLower(kind), "kind": kind, "listKind": kind + "List",
				"categories": array{"cloud", "managed"},
			},
		},
	}
}

// kindName is the kind of the nth definition: two words, each pair once.
func kindName(n int) string {
	return title(nouns[n%len(nouns)]) + title(nouns[(n*7+n/len(nouns)*11+3)%len(nouns)])
}

func columns() array {
	column := func(name, typ, path string) object { return object{"name": name, "type": typ, "jsonPath": path} }
	return array{
		column("SYNCED", "string", ".status.conditions[?(@.type=='Synced')].status"),
		column("READY", "string", ".status.conditions[?(@.type=='Ready')].status"),
		column("EXTERNAL-NAME", "string", `.metadata.annotations.cloud\.example\.com/name`),
		column("AGE", "date", ".metadata.creationTimestamp"),
	}
}

// A form is the form of a field in a schema.
type form int

const (
	text form = iota
	number
	flag
	textSet
	textMap
	secret
	reference
	block  // an object; a list of one in all versions but the last
	blocks // a list of objects
)

// A field is a desired field.
type field struct {
	name, about string
	form        form
	required    bool
	inner       []field // of a block
}

// A maker generates fields, determined by its seed.
type maker struct{ *rand.Rand }

// fields generates a number of fields, with nested blocks up to a depth.
func (m maker) fields(n, depth int) []field {
	var out []field
	names := map[string]bool{"region": true, "id": true}
	for n > 0 {
		f := field{name: m.name(), about: m.sentence(), required: m.IntN(8) == 0}
		if names[f.name] {
			continue
		}
		names[f.name] = true
		n--
		if depth > 0 && n > 2 && m.IntN(4) == 0 {
			f.form = block + form(m.IntN(2))
			inner := min(n, 2+m.IntN(4+n/3))
			f.inner = m.fields(inner, depth-1)
			n -= inner
		} else {
			f.form = m.leaf()
		}
		out = append(out, f)
	}
	return out
}

// leaf picks the form of a field without fields of its own.
func (m maker) leaf() form {
	for _, share := range []struct {
		percent int
		form    form
	}{{12, number}, {12, flag}, {5, textSet}, {3, textMap}, {2, secret}, {8, reference}} {
		// Each percentage is of the rest after the earlier ones.
		if m.IntN(100) < share.percent {
			return share.form
		}
	}
	return text
}

// name is the name of a field, of one word to three.
func (m maker) name() string {
	name := m.word()
	for range m.IntN(3) {
		name += title(m.word())
	}
	return name
}

func (m maker) word() string { return nouns[m.IntN(len(nouns))] }

// sentence is a description, of the length that descriptions have.
func (m maker) sentence() string {
	words := make([]string, 5+m.IntN(20))
	for i := range words {
		if i%2 == 0 {
			words[i] = joints[m.IntN(len(joints))]
		} else {
			words[i] = m.word()
		}
	}
	words[0] = title(words[0])
	return strings.Join(words, " ") + "."
}

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

var nouns = strings.Fields(`
	bucket cluster subnet grant role key queue topic stream table shard volume
	snapshot image instance network gateway route zone record certificate domain
	listener target rule filter schedule window backup replica engine version
	parameter option group user session token alarm metric channel encoder
	endpoint node port protocol`)

var joints = strings.Fields(`
	the a of for with in by each which whether when its other this that and or
	from to every default optional external existing`)
