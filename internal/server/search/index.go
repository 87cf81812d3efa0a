package search

import (
	"cmp"
	"slices"
	"sync"
)

// A Kind is the objects of one resource in an Index.
type Kind struct {
	Group, Resource, Kind string
	Secret                bool // only the metadata and the type of its objects are searched

	words [2]string // the folded names of the kind and the resource
}

func (k *Kind) compare(other *Kind) int {
	return cmp.Or(cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.Group, other.Group), cmp.Compare(k.Resource, other.Resource))
}

// A Document is one state of an object in an Index.
type Document struct {
	Kind      *Kind
	Namespace string
	Name      string
	Revision  int64

	number uint32
}

// An Index has the texts of objects. It only grows: a changed object is another document. All methods may be called
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
	labels  dictionary
	values  dictionary
	buf     []byte
}

// A scope is a kind in a namespace.
type scope struct {
	kind      int
	namespace string
}

// pageSize is the number of documents of a page.
const pageSize = 4096

// A page has consecutive documents.
type page struct {
	revisions []int64
	scopes    []uint32
	names     []byte // folded, each after a separator, with one at the end
	starts    []uint32
	spelled   []spelling // of names that are not folded
}

type spelling struct {
	number uint32 // of the document
	name   string
}

// NewIndex returns an empty Index.
func NewIndex() *Index {
	return &Index{numbers: map[scope]uint32{}, labels: newDictionary(), values: newDictionary()}
}

// AddKind adds a kind, and returns its number.
func (x *Index) AddKind(k Kind) int {
	k.words = [2]string{string(fold(nil, k.Kind)), string(fold(nil, k.Resource))}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kinds = append(x.kinds, &k)
	return len(x.kinds) - 1
}

// Add adds a document without texts, and returns its number. The first documents may come in the order of
// results: by kind, namespace and name. Sorted ends them.
func (x *Index) Add(kind int, namespace, name string, revision int64) uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	in := scope{kind, namespace}
	number, ok := x.numbers[in]
	if !ok {
		number = uint32(len(x.scopes))
		x.scopes, x.numbers[in] = append(x.scopes, in), number
	}
	if x.len%pageSize == 0 {
		x.pages = append(x.pages, page{names: []byte{separator}})
	}
	p := &x.pages[len(x.pages)-1]
	p.revisions = append(p.revisions, revision)
	p.scopes = append(p.scopes, number)
	p.starts = append(p.starts, uint32(len(p.names)))
	x.buf = fold(x.buf[:0], name)
	if string(x.buf) != name {
		p.spelled = append(p.spelled, spelling{x.len, name})
	}
	p.names = append(append(p.names, x.buf...), separator)
	x.inNames.count(x.buf)
	x.len++
	return x.len - 1
}

// Sorted says that all documents so far are in the order of results.
func (x *Index) Sorted() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sorted = x.len
}

// Label adds a label of a document. Its labels are added before those of documents with larger numbers; so are other
// texts.
func (x *Index) Label(document uint32, key, value string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.buf = fold(x.buf[:0], pair(key, value))
	x.labels.add(x.buf, document)
}

// Texts adds the texts of the JSON of a document: its labels, too, if labels is true.
func (x *Index) Texts(document uint32, data []byte, labels bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := &x.pages[document/pageSize]
	secret := x.kinds[x.scopes[p.scopes[document%pageSize]].kind].Secret
	return leaves(data, secret, func(l leaf) bool {
		if l.label && !labels {
			return true
		}
		x.buf = fold(x.buf[:0], l.searched)
		if l.label {
			x.labels.add(x.buf, document)
		} else {
			x.values.add(x.buf, document)
		}
		return true
	})
}

// Document returns a document by its number.
func (x *Index) Document(number uint32) Document {
	x.mu.RLock()
	defer x.mu.RUnlock()
	r := reading{kinds: x.kinds, scopes: x.scopes, pages: x.pages}
	return r.at(number)
}

// Len returns the number of documents.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return int(x.len)
}

// Bytes returns about the size of the Index in memory.
func (x *Index) Bytes() (n int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for i := range x.pages {
		p := &x.pages[i]
		n += 8*cap(p.revisions) + 4*cap(p.scopes) + cap(p.names) + 4*cap(p.starts)
	}
	return n + x.labels.bytes() + x.values.bytes()
}

// A reading is the documents of an Index at one moment.
type reading struct {
	kinds   []*Kind
	scopes  []scope
	pages   []page
	len     uint32
	sorted  uint32
	inNames frequencies
}

// reading needs x.mu. The result does not: parts that it has do not change.
func (x *Index) reading() reading {
	return reading{x.kinds, x.scopes, slices.Clone(x.pages), x.len, x.sorted, x.inNames}
}

// at returns a document.
func (r *reading) at(number uint32) Document {
	p, in := &r.pages[number/pageSize], number%pageSize
	s := r.scopes[p.scopes[in]]
	return Document{r.kinds[s.kind], s.namespace, string(r.name(number)), p.revisions[in], number}
}

// name returns the name of a document.
func (r *reading) name(number uint32) []byte {
	p := &r.pages[number/pageSize]
	if len(p.spelled) > 0 {
		i, ok := slices.BinarySearchFunc(p.spelled, number, func(s spelling, n uint32) int { return cmp.Compare(s.number, n) })
		if ok {
			return []byte(p.spelled[i].name)
		}
	}
	return p.folded(number % pageSize)
}

// folded returns the folded name of a document of the page.
func (p *page) folded(in uint32) []byte {
	end := len(p.names)
	if int(in)+1 < len(p.starts) {
		end = int(p.starts[in+1])
	}
	return p.names[p.starts[in] : end-1]
}
