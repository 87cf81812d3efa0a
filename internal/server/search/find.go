package search

import (
	"bytes"
	"container/heap"
	mathbits "math/bits"
	"slices"
	"sync"
)

// A rank is how well a document matches a word. The lowest is the best, and 0 is no match. The rank for several words
// is the sum of those for each. That for other texts is so large that the number of words that are only there
// decides first, for up to five words.
type rank = uint8

const (
	isName     rank = 1  // the word is the name
	beginsName rank = 2  // the name begins with it
	inName     rank = 3  // it is in the name
	inLabel    rank = 4  // it is in a label, the namespace, or the name of the kind or the resource
	inValue    rank = 16 // it is in another text
)

// maxWords limits the words of a query, so that a sum of ranks fits into its type.
const maxWords = 12

// Find calls found for the documents with all words, until it returns false. The words come from Words. The best rank
// comes first; within a rank, kind, namespace and name decide. The documents include those of earlier states of an
// object: the caller compares the Revision with that of the present state. may returns false for a kind in a
// namespace whose documents are left out.
//
// Other texts are most of the work. A short word is in many of them, and the results for it rarely need them. So the
// first documents have words there that are nowhere else, and each other word in the name or a label. Any other
// document has one word more that is only in another text.
func (x *Index) Find(words []string, may func(k *Kind, namespace string) bool, found func(Document) bool) {
	s := scores{reading: x.reading(), may: may}
	s.decisions = make([]decision, len(s.scopes))
	var all sync.WaitGroup
	for _, word := range words {
		ranks := make([]rank, s.len)
		s.words = append(s.words, ranks)
		all.Go(func() {
			x.mu.RLock()
			defer x.mu.RUnlock()
			s.names(ranks, word, x.inNames.finder([]byte(word)))
			s.texts(ranks, inLabel, x.labels.scan([]byte(word), s.len))
		})
	}
	all.Wait()
	var later []int // words whose other texts are not needed yet
	for i, word := range words {
		if bytes.Count(s.words[i], []byte{0}) < len(s.words[i]) {
			later = append(later, i)
		} else {
			s.values(x, i, word)
		}
	}
	n := rank(len(words))
	settled := n * inValue
	if l := rank(len(later)); l > 0 {
		settled = (n-l+1)*inValue + l - 1 - 1
	}
	s.add()
	if !s.each(n, settled, found) || len(later) == 0 {
		return
	}
	for _, i := range later {
		s.values(x, i, words[i])
	}
	s.add()
	s.each(settled+1, n*inValue, found)
}

// scores are the ranks of documents.
type scores struct {
	reading
	words [][]rank // for each word
	sums  []rank   // for all words; 0 without one of them

	may       func(k *Kind, namespace string) bool
	decisions []decision // of may, by scope
}

type decision uint8

const (
	undecided decision = iota
	allowed
	denied
)

// allows reports whether may allows the scope of a document.
func (s *scores) allows(number uint32) bool {
	in := s.pages[number/pageSize].documents[number%pageSize].scope
	if s.decisions[in] == undecided {
		s.decisions[in] = denied
		if s.may(s.kinds[s.scopes[in].kind], s.scopes[in].namespace) {
			s.decisions[in] = allowed
		}
	}
	return s.decisions[in] == allowed
}

// texts ranks documents that have no better rank.
func (s *scores) texts(ranks []rank, as rank, with set) {
	for i, bits := range with {
		for ; bits != 0; bits &= bits - 1 {
			if at := i*64 + mathbits.TrailingZeros64(bits); ranks[at] == 0 {
				ranks[at] = as
			}
		}
	}
}

// values ranks the documents with a word in another text.
func (s *scores) values(x *Index, i int, word string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s.texts(s.words[i], inValue, x.values.scan([]byte(word), s.len))
}

// names ranks the documents whose names have a word.
func (s *scores) names(all []rank, word string, find func(text []byte) int) {
	for i := range s.pages {
		p := &s.pages[i]
		ranks := all[i*pageSize:]
		for in, from := 0, 0; in < len(p.documents); in++ {
			at := find(p.names[from:])
			if at < 0 {
				break
			}
			at += from
			for in+1 < len(p.documents) && int(p.documents[in+1].name) <= at {
				in++
			}
			switch {
			case at > int(p.documents[in].name):
				ranks[in] = inName
			case p.names[at+len(word)] == separator:
				ranks[in] = isName
			default:
				ranks[in] = beginsName
			}
			if in+1 < len(p.documents) {
				from = int(p.documents[in+1].name)
			}
		}
	}
}

// add adds the ranks for all words.
func (s *scores) add() {
	if s.sums = s.words[0]; len(s.words) == 1 {
		return
	}
	s.sums = slices.Clone(s.sums)
	for _, ranks := range s.words[1:] {
		for i, r := range ranks {
			switch {
			case r == 0:
				s.sums[i] = 0
			case s.sums[i] != 0:
				s.sums[i] += r
			}
		}
	}
}

// each calls found for the documents with ranks from best to worst until it returns false, and returns its last
// result.
func (s *scores) each(best, worst rank, found func(Document) bool) bool {
	for r := best; r <= worst; r++ {
		if !s.ranked(r, found) {
			return false
		}
	}
	return true
}

// ranked calls found for the documents with a rank, in their order.
func (s *scores) ranked(as rank, found func(Document) bool) bool {
	late := arrivals{reading: &s.reading}
	for number := s.after(as, s.sorted, s.len); number < s.len; number = s.after(as, number+1, s.len) {
		if s.allows(number) {
			late.numbers = append(late.numbers, number)
		}
	}
	heap.Init(&late)
	number := s.after(as, 0, s.sorted)
	for number < s.sorted || len(late.numbers) > 0 {
		var next uint32
		if number < s.sorted && (len(late.numbers) == 0 || s.less(number, late.numbers[0])) {
			next = number
			number = s.after(as, number+1, s.sorted)
			if !s.allows(next) {
				continue
			}
		} else {
			next = heap.Pop(&late).(uint32)
		}
		if !found(s.at(next)) {
			return false
		}
	}
	return true
}

// after returns the first document from a number on that has a rank, or upTo.
func (s *scores) after(as rank, from, upTo uint32) uint32 {
	if from < upTo {
		if at := bytes.IndexByte(s.sums[from:upTo], as); at >= 0 {
			return from + uint32(at)
		}
	}
	return upTo
}

// less reports whether a document is before another one in the order of results.
func (r *reading) less(a, b uint32) bool {
	p, q := &r.pages[a/pageSize], &r.pages[b/pageSize]
	d, e := p.documents[a%pageSize], q.documents[b%pageSize]
	if s, t := &r.scopes[d.scope], &r.scopes[e.scope]; s.kind != t.kind {
		return s.kind < t.kind
	} else if s != t {
		return s.namespace+"/" < t.namespace+"/" // as in keys
	}
	if c := bytes.Compare(p.name(d), q.name(e)); c != 0 {
		return c < 0
	}
	return a < b
}

// arrivals is a heap of documents that are not sorted.
type arrivals struct {
	*reading
	numbers []uint32
}

func (a *arrivals) Len() int           { return len(a.numbers) }
func (a *arrivals) Less(i, k int) bool { return a.less(a.numbers[i], a.numbers[k]) }
func (a *arrivals) Swap(i, k int)      { a.numbers[i], a.numbers[k] = a.numbers[k], a.numbers[i] }
func (a *arrivals) Push(n any)         { a.numbers = append(a.numbers, n.(uint32)) }

func (a *arrivals) Pop() any {
	last := len(a.numbers) - 1
	n := a.numbers[last]
	a.numbers = a.numbers[:last]
	return n
}
