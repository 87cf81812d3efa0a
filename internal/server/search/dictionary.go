package search

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
)

// chunkSize is the size of a chunk of text.
const chunkSize = 64 << 10

// A dictionary has each distinct text once, with the documents that have it.
//
// The texts are one after the other in chunks. A search for a substring scans the chunks: the processor does
// that faster than it follows the pointers of an index of substrings, which would also be larger than the text.
type dictionary struct {
	chunks  []chunk
	lists   []postings
	table   []entry // hash table with linear probing; 0 is empty
	len     int
	seed    maphash.Seed
	bytesIn frequencies
}

// A chunk has the texts of consecutive entries, each after a separator.
type chunk struct {
	text   []byte
	starts []uint16 // of the texts
	// documents has the document of each entry, or many and the index of its postings.
	documents []uint32
}

// many marks an entry with several documents.
const many = 1 << 31

// An entry is the number of a chunk, and of an entry in it. One is added, so that 0 is none.
type entry uint32

func entryOf(chunk, in int) entry { return entry(chunk<<16 | in + 1) }

func (e entry) place() (chunk, in int) { return int(e >> 16), int(e&(1<<16-1)) - 1 }

// postings are ascending numbers of documents, as differences in varints.
type postings struct {
	last        uint32
	differences []byte
}

func newDictionary() dictionary { return dictionary{seed: maphash.MakeSeed()} }

// add adds a folded text of a document. Documents come in ascending order.
func (d *dictionary) add(text []byte, document uint32) {
	if d.len*4 >= len(d.table)*3 {
		d.grow()
	}
	slot := d.slot(text)
	if d.table[slot] == 0 {
		d.table[slot] = d.insert(text, document)
		return
	}
	c, in := d.table[slot].place()
	at := &d.chunks[c].documents[in]
	if *at&many == 0 {
		if *at == document {
			return
		}
		d.lists = append(d.lists, postings{last: *at, differences: binary.AppendUvarint(nil, uint64(*at))})
		*at = many | uint32(len(d.lists)-1)
	}
	l := &d.lists[*at&^many]
	if l.last == document {
		return
	}
	l.differences = binary.AppendUvarint(l.differences, uint64(document-l.last))
	l.last = document
}

// slot returns the slot of the table that has a text, or the empty one for it.
func (d *dictionary) slot(text []byte) int {
	mask := len(d.table) - 1
	slot := int(maphash.Bytes(d.seed, text)) & mask
	for d.table[slot] != 0 && !bytes.Equal(d.text(d.table[slot]), text) {
		slot = (slot + 1) & mask
	}
	return slot
}

// text returns the text of an entry.
func (d *dictionary) text(e entry) []byte {
	n, in := e.place()
	return d.chunks[n].at(in)
}

func (c *chunk) at(in int) []byte {
	end := len(c.text)
	if in+1 < len(c.starts) {
		end = int(c.starts[in+1]) - 1
	}
	return c.text[c.starts[in]:end]
}

// insert appends an entry, and returns 0 if there is no number for one.
func (d *dictionary) insert(text []byte, document uint32) entry {
	last := len(d.chunks) - 1
	if last < 0 || len(d.chunks[last].text)+1+len(text) > chunkSize {
		if last++; last == 1<<16-1 {
			return 0
		}
		var next chunk
		if last > 0 {
			next.text = make([]byte, 0, chunkSize)
			full := &d.chunks[last-1]
			full.starts, full.documents = slices.Clone(full.starts), slices.Clone(full.documents)
		}
		d.chunks = append(d.chunks, next)
	}
	c := &d.chunks[last]
	c.text = append(c.text, separator)
	c.starts = append(c.starts, uint16(len(c.text)))
	c.text = append(c.text, text...)
	c.documents = append(c.documents, document)
	d.bytesIn.count(text)
	d.len++
	return entryOf(last, len(c.starts)-1)
}

// grow doubles the table.
func (d *dictionary) grow() {
	d.table = make([]entry, max(1<<10, 2*len(d.table)))
	for n := range d.chunks {
		for in := range d.chunks[n].starts {
			e := entryOf(n, in)
			d.table[d.slot(d.chunks[n].at(in))] = e
		}
	}
}

// A set has documents as bits.
type set []uint64

func newSet(documents uint32) set { return make(set, (documents+63)/64) }

// scan returns the documents of the texts that contain a word, up to a number of documents.
func (d *dictionary) scan(word []byte, upTo uint32) set {
	workers := min(runtime.GOMAXPROCS(0), 1+len(d.chunks)/chunksOfWorker)
	sets, part := make([]set, workers), (len(d.chunks)+workers-1)/workers
	var all sync.WaitGroup
	for i := range workers {
		chunks := d.chunks[min(i*part, len(d.chunks)):min((i+1)*part, len(d.chunks))]
		sets[i] = newSet(upTo)
		if i == workers-1 {
			d.scanChunks(chunks, word, upTo, sets[i])
		} else {
			all.Go(func() { d.scanChunks(chunks, word, upTo, sets[i]) })
		}
	}
	all.Wait()
	for _, other := range sets[1:] {
		for i, bits := range other {
			sets[0][i] |= bits
		}
	}
	return sets[0]
}

// chunksOfWorker is the number of chunks for which another goroutine is worth its cost.
const chunksOfWorker = 64

func (d *dictionary) scanChunks(chunks []chunk, word []byte, upTo uint32, into set) {
	find := d.bytesIn.finder(word)
	for i := range chunks {
		c := &chunks[i]
		in := 0
		for from := 0; ; {
			at := find(c.text[from:])
			if at < 0 {
				break
			}
			in = c.holder(in, uint16(from+at))
			d.collect(c.documents[in], upTo, into)
			if in++; in == len(c.starts) {
				break
			}
			from = int(c.starts[in])
		}
	}
}

// holder returns the entry with the text at an offset, which is not before the entry from. It is often near that.
func (c *chunk) holder(from int, offset uint16) int {
	step := 1
	for from+step < len(c.starts) && c.starts[from+step] <= offset {
		from += step
		step *= 2
	}
	for ; step > 0; step /= 2 {
		if from+step < len(c.starts) && c.starts[from+step] <= offset {
			from += step
		}
	}
	return from
}

// collect adds the documents of an entry to a set.
func (d *dictionary) collect(documents, upTo uint32, into set) {
	if documents&many == 0 {
		if documents < upTo {
			into[documents/64] |= 1 << (documents % 64)
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
		into[document/64] |= 1 << (document % 64)
	}
}

// bytes returns about the size of the dictionary in memory.
func (d *dictionary) bytes() (n int) {
	n = cap(d.table)*4 + cap(d.lists)*32
	for i := range d.lists {
		n += cap(d.lists[i].differences)
	}
	for i := range d.chunks {
		c := &d.chunks[i]
		n += cap(c.text) + 2*cap(c.starts) + 4*cap(c.documents)
	}
	return n
}
