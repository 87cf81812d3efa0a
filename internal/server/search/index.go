package search

import (
	"bytes"
	"slices"
	"sync"

	"github.com/anykind/anykind/internal/object"
)

// A Kind is the objects of one resource in an Index.
type Kind struct {
	Group, Resource, Kind string
	Secret                bool // only the metadata and the type of its objects are searched
}

// A Document is one state of an object in an Index.
type Document struct {
	Kind      *Kind
	Namespace string
	Name      string
	Revision  int64
}

// An Index has the texts of objects. It only grows: a changed object is another document. Its methods may be called
// concurrently, but those that add by one goroutine.
type Index struct {
	mu      sync.RWMutex
	kinds   []*Kind
	scopes  []scope
	numbers map[scope]uint32 // of scopes
	pages   []page
	len     uint32
	// sorted is the number of documents in the order of results; later ones are in that of their arrival.
	sorted  uint32
	inNames frequencies
	labels  dictionary // and namespaces, and the names of kinds and resources
	values  dictionary
	buf     []byte
}

// A scope is a kind, by its number, in a namespace.
type scope struct {
	kind      int
	namespace string
}

// pageSize is the number of documents of a page.
const pageSize = 4096

// A page has consecutive documents.
type page struct {
	documents []document
	// names has the folded name of each document after a separator. If the name differs from that, it comes next, after
	// another separator: a word is in the folded one first.
	names []byte
}

type document struct {
	revision int64
	scope    uint32
	name     uint32 // its offset
}

// NewIndex returns an empty Index.
func NewIndex() *Index { return &Index{numbers: map[scope]uint32{}} }

// AddKind adds a kind, and returns its number. The numbers are the order of kinds in results.
func (x *Index) AddKind(k *Kind) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kinds = append(x.kinds, k)
	return len(x.kinds) - 1
}

// Add adds a document with its labels, and returns its number. The first documents come in the order of results: by
// kind, and then as keys with the namespace and the name. Sorted ends them.
func (x *Index) Add(kind int, namespace, name string, revision int64, labels object.Labels) uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	in := scope{kind, namespace}
	number, ok := x.numbers[in]
	if !ok {
		number = uint32(len(x.scopes))
		x.scopes, x.numbers[in] = append(x.scopes, in), number
	}
	if x.len%pageSize == 0 {
		x.pages = append(x.pages, page{})
	}
	p := &x.pages[len(x.pages)-1]
	x.buf = append(fold(append(x.buf[:0], separator), name), separator)
	p.documents = append(p.documents, document{revision, number, uint32(len(p.names) + 1)})
	x.inNames.count(x.buf)
	if string(x.buf[1:len(x.buf)-1]) != name {
		x.buf = append(append(x.buf, name...), separator)
	}
	p.names = append(p.names, x.buf...)
	x.len++
	k := x.kinds[kind]
	for _, text := range []string{namespace, k.Kind, k.Resource} {
		x.add(&x.labels, text)
	}
	for _, l := range labels {
		x.add(&x.labels, pair(l.Key, l.Value))
	}
	return x.len - 1
}

// add adds a text of the last document.
func (x *Index) add(to *dictionary, text string) {
	if x.buf = fold(x.buf[:0], text); text != "" {
		to.add(x.buf, x.len-1)
	}
}

// Sorted says that all documents so far are in the order of results, and that they have their texts.
func (x *Index) Sorted() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sorted = x.len
	x.labels.compact()
	x.values.compact()
}

// Texts adds the texts of the JSON of a document, other than labels. Documents come in the order of their numbers.
func (x *Index) Texts(number uint32, data []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	secret := x.kinds[x.scopes[x.document(number).scope].kind].Secret
	leaves(data, secret, func(l leaf) bool {
		if !l.label {
			x.buf = fold(x.buf[:0], l.searched)
			x.values.add(x.buf, number)
		}
		return true
	})
}

// document returns a document. It needs x.mu.
func (x *Index) document(number uint32) document {
	return x.pages[number/pageSize].documents[number%pageSize]
}

// A reading is the documents of an Index at one moment. It does not change.
type reading struct {
	kinds       []*Kind
	scopes      []scope
	pages       []page
	len, sorted uint32
}

func (x *Index) reading() reading {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return reading{x.kinds, x.scopes, slices.Clone(x.pages), x.len, x.sorted}
}

// at returns a document.
func (r *reading) at(number uint32) Document {
	p := &r.pages[number/pageSize]
	d := p.documents[number%pageSize]
	s := r.scopes[d.scope]
	return Document{r.kinds[s.kind], s.namespace, string(p.name(d)), d.revision}
}

// name returns the name of a document of the page.
func (p *page) name(d document) []byte {
	rest := p.names[d.name:]
	end := bytes.IndexByte(rest, separator)
	if end+1 == len(rest) || rest[end+1] == separator {
		return rest[:end]
	}
	rest = rest[end+1:]
	return rest[:bytes.IndexByte(rest, separator)]
}
