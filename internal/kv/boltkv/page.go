package boltkv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/anykind/anykind/internal/kv"
)

// A boltFile is a bbolt file, read without bbolt. bbolt trusts its pages: it
// panics, in goroutines of its own too, or never ends when they are damaged. So
// the whole tree is walked here first, with every offset checked and every page
// visited at most once.
//
// What is known of the format: the first two pages are metas, used in turn. All
// others are nodes of trees, or free. A page may run on into the pages after it.
// Numbers are in the byte order of the machine.
type boltFile struct {
	path     string
	data     []byte
	pageSize uint64
	pages    uint64 // in use or free; what follows in the file was never used
	root     uint64
	visited  []uint64 // one bit for each page
}

// Offsets in a page and sizes of what it consists of.
const (
	pageHeader  = 16 // id uint64, flags uint16, count uint16, overflow uint32
	elementSize = 16 // of a branch: pos, ksize uint32, page uint64; of a leaf: flags, pos, ksize, vsize uint32
	metaSize    = 56 // after the page header, without its checksum of 8 bytes

	flagBranch  = 1
	flagLeaf    = 2
	flagBucket  = 1 // of an element of a leaf
	boltMagic   = 0xED0CDAED
	boltVersion = 2
)

var native = binary.NativeEndian

type boltMeta struct {
	pageSize, root, pages, txid uint64
	bytes                       []byte // with the checksum at their end
	valid                       bool
}

// readMeta reads the meta at an offset. Its txid is what is written there, also
// when the meta is not valid.
func readMeta(data []byte, offset uint64) boltMeta {
	if uint64(len(data)) < offset+pageHeader+metaSize+8 {
		return boltMeta{}
	}
	b := data[offset+pageHeader:][:metaSize+8]
	return boltMeta{
		bytes:    b,
		pageSize: uint64(native.Uint32(b[8:])),
		root:     native.Uint64(b[16:]),
		pages:    native.Uint64(b[40:]),
		txid:     native.Uint64(b[48:]),
		valid: native.Uint32(b) == boltMagic && native.Uint32(b[4:]) == boltVersion &&
			native.Uint64(b[metaSize:]) == metaSum(b),
	}
}

func metaSum(b []byte) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize])
	return sum.Sum64()
}

// isOlder says whether a damaged meta is surely not that of the transaction
// after the newest whole one.
func (m *boltMeta) isOlder(newest uint64) bool {
	if m.bytes == nil || m.txid+1 != newest {
		return false
	}
	// What is damaged may be just what makes it look older.
	b := bytes.Clone(m.bytes)
	native.PutUint64(b[48:], newest+1)
	return native.Uint64(b[metaSize:]) != metaSum(b)
}

// newBoltFile finds the newest state of the file.
func newBoltFile(path string, data []byte) (*boltFile, error) {
	first := readMeta(data, 0)
	second := boltMeta{}
	if first.valid {
		second = readMeta(data, first.pageSize)
	}
	for size := uint64(1 << 9); !first.valid && !second.valid && size <= 1<<20; size <<= 1 {
		if m := readMeta(data, size); m.valid && m.pageSize == size {
			second = m
		}
	}
	newest, other := first, second
	if !first.valid || (second.valid && second.txid > first.txid) {
		newest, other = second, first
	}
	f := &boltFile{path: path, data: data}
	switch {
	case !newest.valid:
		return nil, f.damage("meta pages", "neither is a valid bbolt meta page")
	case !other.valid && !other.isOlder(newest.txid):
		// A crash leaves a meta page as it was or as it was to be, because it is
		// one sector of the disk. So this is one that was written, and then was
		// damaged; the other one is older, and to go on with it would lose
		// acknowledged writes.
		return nil, f.damage("meta pages", fmt.Sprintf("one is valid, of transaction %d, but may not be the newest", newest.txid))
	case newest.pageSize < 512 || newest.pageSize&(newest.pageSize-1) != 0:
		return nil, f.damage("meta pages", fmt.Sprintf("page size %d", newest.pageSize))
	}
	f.pageSize, f.pages, f.root = newest.pageSize, newest.pages, newest.root
	if size := uint64(len(data)); f.pages > size/f.pageSize {
		return nil, f.damage("its end", fmt.Sprintf("the file has %d bytes, its %d pages of %d bytes need more", size, f.pages, f.pageSize))
	}
	f.visited = make([]uint64, f.pages/64+1)
	return f, nil
}

func (f *boltFile) damage(where any, reason string) error {
	return &kv.CorruptError{Where: fmt.Sprint(f.path, ", ", where), Reason: reason}
}

// A pageID is the number of a page in the file. Zero is a bucket that is so
// small that it is inside another page.
type pageID uint64

func (id pageID) String() string {
	if id == 0 {
		return "a small bucket"
	}
	return fmt.Sprintf("page %d", uint64(id))
}

// A page is a node of a tree.
type page struct {
	id    pageID
	bytes []byte
	leaf  bool
	count int
}

// page returns the page of an id, which must not have been visited before.
func (f *boltFile) page(id uint64) (page, error) {
	where := pageID(id)
	if id < 2 || id >= f.pages {
		return page{}, f.damage(where, "a page points to it, but there is none")
	}
	header := f.data[id*f.pageSize:]
	length := 1 + uint64(native.Uint32(header[12:]))
	if native.Uint64(header) != id {
		return page{}, f.damage(where, fmt.Sprintf("it says that it is page %d", native.Uint64(header)))
	}
	if length > f.pages-id {
		return page{}, f.damage(where, fmt.Sprintf("its length of %d pages is more than there are", length))
	}
	for i := id; i < id+length; i++ {
		if f.visited[i/64]&(1<<(i%64)) != 0 {
			return page{}, f.damage(where, fmt.Sprintf("page %d is used twice", i))
		}
		f.visited[i/64] |= 1 << (i % 64)
	}
	return f.node(where, header[:length*f.pageSize:length*f.pageSize])
}

// node reads the header of a page or of a bucket that is stored inside one.
func (f *boltFile) node(where pageID, b []byte) (page, error) {
	if len(b) < pageHeader {
		return page{}, f.damage(where, "it is too short")
	}
	p := page{id: where, bytes: b, count: int(native.Uint16(b[10:]))}
	switch flags := native.Uint16(b[8:]); flags {
	case flagBranch:
	case flagLeaf:
		p.leaf = true
	default:
		return page{}, f.damage(where, fmt.Sprintf("its kind is %#x, which is not that of a node", flags))
	}
	if pageHeader+p.count*elementSize > len(b) {
		return page{}, f.damage(where, fmt.Sprintf("it has no room for its %d elements", p.count))
	}
	return p, nil
}

// An element of a page: a child of a branch, or a key with its value.
type element struct {
	key, value []byte
	child      uint64
	bucket     bool
}

func (f *boltFile) element(p page, i int) (element, error) {
	start := pageHeader + i*elementSize
	b := p.bytes[start:]
	var e element
	var pos, keySize, valueSize uint64
	if p.leaf {
		flags := native.Uint32(b)
		if flags > flagBucket {
			return element{}, f.damage(p.id, fmt.Sprintf("element %d has flags %#x", i, flags))
		}
		e.bucket = flags == flagBucket
		pos, keySize, valueSize = uint64(native.Uint32(b[4:])), uint64(native.Uint32(b[8:])), uint64(native.Uint32(b[12:]))
	} else {
		pos, keySize = uint64(native.Uint32(b)), uint64(native.Uint32(b[4:]))
		e.child = native.Uint64(b[8:])
	}
	end := pos + keySize + valueSize
	if end > uint64(len(b)) {
		return element{}, f.damage(p.id, fmt.Sprintf("element %d is not inside the page", i))
	}
	e.key, e.value = b[pos:pos+keySize], b[pos+keySize:end]
	return e, nil
}

// walk visits all keys of a tree in order. Low and high are what its keys must
// be between: not below low, and below high if that is not nil.
func (f *boltFile) walk(id uint64, low, high []byte, visit func(where pageID, e element) error) error {
	p, err := f.page(id)
	if err != nil {
		return err
	}
	return f.walkNode(p, low, high, visit)
}

func (f *boltFile) walkNode(p page, low, high []byte, visit func(where pageID, e element) error) error {
	for i := range p.count {
		e, err := f.element(p, i)
		if err != nil {
			return err
		}
		if order := bytes.Compare(e.key, low); order < 0 || (order == 0 && i > 0) || (high != nil && bytes.Compare(e.key, high) >= 0) {
			return f.damage(p.id, fmt.Sprintf("the key of element %d is not in order", i))
		}
		if low = e.key; p.leaf {
			err = visit(p.id, e)
		} else {
			var next element
			if i+1 < p.count {
				if next, err = f.element(p, i+1); err != nil {
					return err
				}
			} else {
				next.key = high
			}
			err = f.walk(e.child, e.key, next.key, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket visits all keys of a bucket, given the value it is stored as.
func (f *boltFile) bucket(stored []byte, visit func(where pageID, e element) error) error {
	if len(stored) < 16 {
		return f.damage("its root", "a bucket is too short")
	}
	if root := native.Uint64(stored); root != 0 {
		return f.walk(root, nil, nil, visit)
	}
	p, err := f.node(0, stored[16:])
	if err != nil {
		return err
	}
	if !p.leaf {
		return f.damage(p.id, "a bucket inside a page is not a leaf")
	}
	return f.walkNode(p, nil, nil, visit)
}
