package search

import (
	"context"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Results are the answer to a search.
type Results struct {
	Kind       string  `json:"kind"`
	APIVersion string  `json:"apiVersion"`
	Items      []*Item `json:"items"`
	// Remaining reports that there are further results.
	Remaining bool `json:"remaining"`
	// Indexing reports that the index lacks objects, or texts other than names and labels.
	Indexing bool `json:"indexing"`
}

// An Item is an object with all words. Path, Value and Matched are the place of the first word that is not in its
// name, or of the first word if all are.
type Item struct {
	resource.Place
	Path    string `json:"path"`
	Value   string `json:"value"`
	Matched Span   `json:"matched"`
}

// A Span is the place of a match in a value, in units of UTF-16, as strings of JavaScript have them.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// maxDecisions limits the questions to the authorizer of a search. It may be a webhook.
const maxDecisions = 10_000

// An answer collects the results of one search.
type answer struct {
	*Options
	*Results
	ctx       context.Context
	words     []string
	limit     int
	set       *resource.Set
	sources   map[*Kind]*source
	decisions int
}

// A source is the objects of a kind for one user.
type source struct {
	*resource.Definition
	*watchcache.Resource
	everywhere bool // the user may list the kind in all namespaces
}

// source returns the source of a kind; nil if it is not served.
func (a *answer) source(k *Kind) *source {
	if s, ok := a.sources[k]; ok {
		return s
	}
	var s *source
	if d := a.set.Lookup(k.Group, k.Resource); d != nil && d.Served() && searchable(d) {
		s = &source{Definition: d, Resource: a.Cache.Resource(d.StoragePrefix)}
		s.everywhere = a.lists(d, "")
	}
	a.sources[k] = s
	return s
}

// may reports whether the user may list a kind in a namespace.
func (a *answer) may(k *Kind, namespace string) bool {
	s := a.source(k)
	return s != nil && (s.everywhere || namespace != "" && a.lists(s.Definition, namespace))
}

// lists asks the authorizer.
func (a *answer) lists(d *resource.Definition, namespace string) bool {
	if a.decisions++; a.decisions > maxDecisions {
		a.Remaining = true
		return false
	}
	return authz.Check(a.ctx, a.Authorizer, &authz.Attributes{User: request.UserFrom(a.ctx), Info: request.Info{
		IsResource: true, Verb: "list", Group: d.Group, Version: version(d, "").Name, Resource: d.Plural, Namespace: namespace,
	}}) == nil
}

// version returns the version in which an object is shown: that in which it is stored, if it is served, and
// otherwise the first one.
func version(d *resource.Definition, stored string) (v *resource.Version) {
	for _, of := range d.Versions {
		if of.Served && (v == nil || d.IsAPIVersion(stored, of.Name)) {
			v = of
		}
	}
	return v
}

// add adds a document to the results, and returns false if there is no room for it. A document of an earlier state is
// left out. So is one whose words are not in its view: they are in fields that are not served.
func (a *answer) add(document Document) bool {
	s := a.source(document.Kind)
	o, err := s.Get(a.ctx, s.Key(document.Namespace, document.Name))
	if err != nil || o == nil || o.Revision != document.Revision {
		return a.ctx.Err() == nil
	}
	v := version(s.Definition, o.APIVersion())
	item := &Item{Place: s.Place(v.Name, document.Namespace, document.Name)}
	switch {
	case !a.locate(item, s.Definition, v, o):
		return a.ctx.Err() == nil
	case len(a.Items) == a.limit:
		a.Remaining = true
		return false
	}
	a.Items = append(a.Items, item)
	return true
}

// locate sets the place of the match, and reports whether the object has all words.
func (a *answer) locate(item *Item, d *resource.Definition, v *resource.Version, o *watchcache.Object) bool {
	var data []byte
	for _, word := range a.words {
		if within(item.Name, word) >= 0 {
			continue
		}
		if data == nil {
			e, err := a.Objects.View(a.ctx, d, v, o)
			if err != nil {
				return false
			}
			data = e.JSON
		}
		if !item.find(word, data, isSecret(d)) {
			return false
		}
	}
	return item.Path != "" || item.match("metadata.name", item.Name, a.words[0])
}

// find sets the best place of a word other than the name, unless that of another word is set. It reports whether there
// is one.
func (i *Item) find(word string, data []byte, secret bool) bool {
	if i.match("kind", i.Kind, word) || i.match("resource", i.Resource, word) || i.match("metadata.namespace", i.Namespace, word) {
		return true
	}
	var path, text string
	leaves(data, secret, func(l leaf) bool {
		if !l.label && path != "" || within(l.searched, word) < 0 {
			return true
		}
		path, text = l.path.String(), l.text
		return !l.label
	})
	return path != "" && i.match(path, text, word)
}

// match sets the place of a word in a text, if it is there and no other place is set.
func (i *Item) match(path, text, word string) bool {
	at := within(text, word)
	if at >= 0 && i.Path == "" {
		i.Path = path
		i.Value, i.Matched = excerpt(text, at, len(word))
	}
	return at >= 0
}
