package search

import (
	"context"
	"strings"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Results are the answer to a search.
type Results struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Items      []Item `json:"items"`
	// Remaining reports that there are further results.
	Remaining bool `json:"remaining"`
	// Indexing reports that the index lacks objects, or texts other than names and labels.
	Indexing bool `json:"indexing"`
}

// An Item is an object with all words. Path, Value and Matched are the place of the first word that is not in its
// name, or of the first word if all are.
type Item struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Resource  string `json:"resource"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Path      string `json:"path"`
	Value     string `json:"value"`
	Matched   Span   `json:"matched"`
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
	ctx       context.Context
	words     []string
	limit     int
	set       *resource.Set
	sources   map[*Kind]*source
	decisions int
	results   Results
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
	if d := a.set.Lookup(k.Group, k.Resource); d != nil && d.Stored() && d.Served() && d.Allows("list") {
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
		a.results.Remaining = true
		return false
	}
	return authz.Check(a.ctx, a.Authorizer, &authz.Attributes{User: request.UserFrom(a.ctx), Info: request.Info{
		IsResource: true, Verb: "list", Group: d.Group, Version: preferred(d).Name, Resource: d.Plural, Namespace: namespace,
	}}) == nil
}

// preferred returns the first served version.
func preferred(d *resource.Definition) *resource.Version {
	for _, v := range d.Versions {
		if v.Served {
			return v
		}
	}
	return d.StorageVersion()
}

// version returns the version in which an object is shown: that in which it is stored, if it is served.
func version(d *resource.Definition, o *watchcache.Object) *resource.Version {
	for _, v := range d.Versions {
		if v.Served && d.IsAPIVersion(o.APIVersion(), v.Name) {
			return v
		}
	}
	return preferred(d)
}

// add adds a document to the results, and returns false if there is no room for it. A document of an earlier state is
// left out. So is one whose words are not in its view: they are in fields that are not served.
func (a *answer) add(document Document) bool {
	s := a.source(document.Kind)
	o, err := s.Get(a.ctx, s.Key(document.Namespace, document.Name))
	if err != nil || o == nil || o.Revision != document.Revision {
		return a.ctx.Err() == nil
	}
	v := version(s.Definition, o)
	item := Item{
		Group: s.Group, Version: v.Name, Resource: s.Plural, Kind: s.Kind, Namespace: document.Namespace, Name: document.Name,
	}
	if !a.locate(&item, s.Definition, v, o) {
		return a.ctx.Err() == nil
	}
	if len(a.results.Items) == a.limit {
		a.results.Remaining = true
		return false
	}
	a.results.Items = append(a.results.Items, item)
	return true
}

// locate sets the place of the match, and reports whether the object has all words.
func (a *answer) locate(item *Item, d *resource.Definition, v *resource.Version, o *watchcache.Object) bool {
	name := string(fold(nil, item.Name))
	var found *hit
	var data []byte
	for _, word := range a.words {
		if strings.Contains(name, word) {
			continue
		}
		if data == nil {
			e, err := a.View(a.ctx, d, v, o)
			if err != nil {
				return false
			}
			data = e.JSON
		}
		h := find(word, item, data, isSecret(d))
		if h == nil {
			return false
		}
		if found == nil {
			found = h
		}
	}
	if found == nil {
		found = &hit{"metadata.name", item.Name, strings.Index(name, a.words[0]), len(a.words[0])}
	}
	item.Path = found.path
	item.Value, item.Matched = excerpt(found.text, found.at, found.length)
	return true
}

// A hit is the place of a word in an object.
type hit struct {
	path, text string
	at, length int
}

// find returns the best place of a word in an object, except its name.
func find(word string, item *Item, data []byte, secret bool) (found *hit) {
	for _, t := range []struct{ path, text string }{
		{"kind", item.Kind}, {"metadata.namespace", item.Namespace}, {"resource", item.Resource},
	} {
		if at := within(t.text, word); at >= 0 {
			return &hit{t.path, t.text, at, len(word)}
		}
	}
	_ = leaves(data, secret, func(l leaf) bool {
		if found != nil && !l.label {
			return true
		}
		if at := within(l.searched, word); at >= 0 {
			found = &hit{string(l.path.Append(nil)), strings.Clone(l.text), at, len(word)}
		}
		return found == nil || !l.label
	})
	return found
}
