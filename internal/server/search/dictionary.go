package search

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
)

const (
	// chunkSize is the size of a chunk of text.
	chunkSize = 4 << 10
	// entryBits are the bits of a number for the entry in its chunk.
	entryBits = 12
	maxChunks = 1<<(32-entryBits) - 1
)

// A dictionary has each distinct text once, with the documents that have it. Its zero value is empty.
//
// Chunks hold the texts one after the other. A search for a part of a text scans the chunks that may have all of its
// trigrams. A scan is faster than following the pointers of an index of parts, and such an index would be larger than the texts.
type dictionary struct {
	chunks []chunk
	lists  []postings
	table  []uint32 // hash table of entries and one, with linear probing; 0 is empty
	len    int
	seed   maphash.Seed
	bytes  frequencies
}

// A chunk has the texts of consecutive entries, each after a separator.
type chunk struct {
	text     []byte
	entries  []entry
	trigrams *filter
}

// An entry is a text with its documents. It is numbered by its chunk and its place in that.
type entry struct {
	start     uint32 // of the text in the chunk
	documents uint32 // the document, or many and the index of postings
}

// many marks an entry with several documents.
const many = 1 << 31

// postings are ascending numbers of documents, as differences in varints.
type postings struct {
	last        uint32
	differences []byte
}

// add adds a folded text of a document. The documents of a text come in ascending order.
func (d *dictionary) add(text []byte, document uint32) {
	if d.len*4 >= len(d.table)*3 {
		d.grow()
	}
	slot := d.slot(text)
	if d.table[slot] == 0 {
		d.insert(slot, text, document)
		return
	}
	e := d.entry(d.table[slot])
	if e.documents == document {
		return
	}
	if e.documents < many {
		d.lists = append(d.lists, postings{0, binary.AppendUvarint(nil, uint64(e.documents))})
		d.lists[len(d.lists)-1].last = e.documents
		e.documents = many | uint32(len(d.lists)-1)
	}
	if l := &d.lists[e.documents&^many]; l.last != document {
		l.differences = binary.AppendUvarint(l.differences, uint64(document-l.last))
		l.last = document
	}
}

// entry returns an entry of the table.
func (d *dictionary) entry(number uint32) *entry {
	return &d.chunks[number>>entryBits].entries[number&(1<<entryBits-1)-1]
}

// slot returns the slot of the table that has a text, or the empty one for it.
func (d *dictionary) slot(text []byte) int {
	slot := int(maphash.Bytes(d.seed, text))
	for {
		slot &= len(d.table) - 1
		number := d.table[slot]
		if number == 0 {
			return slot
		}
		rest := d.chunks[number>>entryBits].text[d.entry(number).start:]
		if bytes.HasPrefix(rest, text) && (len(rest) == len(text) || rest[len(text)] == separator) {
			return slot
		}
		slot++
	}
}

// insert appends an entry, as long as there are numbers for entries.
func (d *dictionary) insert(slot int, text []byte, document uint32) {
	last := len(d.chunks) - 1
	if last < 0 || len(d.chunks[last].text)+len(text) >= chunkSize {
		if last >= 0 {
			d.chunks[last].entries = slices.Clone(d.chunks[last].entries) // without room for more
		}
		if last++; last == maxChunks {
			return
		}
		d.chunks = append(d.chunks, chunk{text: make([]byte, 0, chunkSize), trigrams: new(filter)})
	}
	c := &d.chunks[last]
	c.text = append(c.text, separator)
	c.entries = append(c.entries, entry{uint32(len(c.text)), document})
	c.text = append(c.text, text...)
	d.table[slot] = uint32(last<<entryBits | len(c.entries))
	d.len++
	d.bytes.count(text)
	c.trigrams.add(text)
}

// grow doubles the table.
func (d *dictionary) grow() {
	if d.table == nil {
		d.seed = maphash.MakeSeed()
	}
	was := d.table
	d.table = make([]uint32, max(1<<10, 2*len(was)))
	for _, number := range was {
		if number != 0 {
			text := d.chunks[number>>entryBits].text[d.entry(number).start:]
			if end := bytes.IndexByte(text, separator); end >= 0 {
				text = text[:end]
			}
			d.table[d.slot(text)] = number
		}
	}
}

// compact puts the postings into the order of the texts, so that a scan reads memory in order.
func (d *dictionary) compact() {
	size := 0
	for _, l := range d.lists {
		size += len(l.differences)
	}
	lists, all := make([]postings, 0, len(d.lists)), make([]byte, 0, size)
	for _, c := range d.chunks {
		for i := range c.entries {
			if e := &c.entries[i]; e.documents >= many {
				l, begin := d.lists[e.documents&^many], len(all)
				all = append(all, l.differences...)
				e.documents = many | uint32(len(lists))
				lists = append(lists, postings{l.last, slices.Clip(all[begin:])})
			}
		}
	}
	d.lists = lists
}

// A set has documents as bits.
type set []uint64

func (s set) add(document uint32) { s[document/64] |= 1 << (document % 64) }

// chunksOfWorker is the number of chunks for which another goroutine is worth its cost.
const chunksOfWorker = 1024

// scan returns the documents of the texts that contain a word, up to a number of documents.
func (d *dictionary) scan(word []byte, upTo uint32) set {
	workers := min(runtime.GOMAXPROCS(0), 1+len(d.chunks)/chunksOfWorker)
	sets := make([]set, workers)
	find, trigrams := d.bytes.finder(word), trigramsOf(word)
	var all sync.WaitGroup
	for i := range workers {
		sets[i] = make(set, upTo/64+1)
		all.Go(func() {
			for n := i; n < len(d.chunks); n += workers {
				if c := &d.chunks[n]; c.trigrams.has(trigrams) {
					d.scanChunk(c, find, upTo, sets[i])
				}
			}
		})
	}
	all.Wait()
	for _, other := range sets[1:] {
		for i, bits := range other {
			sets[0][i] |= bits
		}
	}
	return sets[0]
}

func (d *dictionary) scanChunk(c *chunk, find func(text []byte) int, upTo uint32, into set) {
	in, from := 0, 0
	for in < len(c.entries) {
		at := find(c.text[from:])
		if at < 0 {
			return
		}
		in = c.holder(in, uint32(from+at)) + 1
		d.collect(c.entries[in-1].documents, upTo, into)
		if in < len(c.entries) {
			from = int(c.entries[in].start)
		}
	}
}

// holder returns the entry with the text at an offset. The search begins at the entry from: the result is not before it,
// and often near it.
func (c *chunk) holder(from int, offset uint32) int {
	step := 1
	for from+step < len(c.entries) && c.entries[from+step].start <= offset {
		from += step
		step *= 2
	}
	for ; step > 0; step /= 2 {
		if from+step < len(c.entries) && c.entries[from+step].start <= offset {
			from += step
		}
	}
	return from
}

// collect adds the documents of an entry to a set.
func (d *dictionary) collect(documents, upTo uint32, into set) {
	if documents < many {
		if documents < upTo {
			into.add(documents)
		}
		return
	}
	document, rest := uint32(0), d.lists[documents&^many].differences
	for i := 0; i < len(rest); {
		difference, n := uint64(rest[i]), 1
		if difference >= 0x80 {
			difference, n = binary.Uvarint(rest[i:])
		}
		if document += uint32(difference); document >= upTo {
			return
		}
		i += n
		into.add(document)
	}
}
