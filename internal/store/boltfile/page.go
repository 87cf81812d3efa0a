package boltfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// Offsets in a page and sizes of its parts.
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
	bytes                       []byte // including the checksum at their end
	valid                       bool
}

// readMeta reads the meta at an offset. Its txid is the stored one, even if the meta is not valid.
func (f *File) readMeta(offset uint64) (boltMeta, error) {
	const size = metaSize + 8
	if f.size < offset+pageHeader+size {
		return boltMeta{}, nil
	}
	b, err := f.read(offset+pageHeader, size)
	if err != nil {
		return boltMeta{}, err
	}
	return boltMeta{
		bytes:    b,
		pageSize: uint64(native.Uint32(b[8:])),
		root:     native.Uint64(b[16:]),
		pages:    native.Uint64(b[40:]),
		txid:     native.Uint64(b[48:]),
		valid: native.Uint32(b) == boltMagic && native.Uint32(b[4:]) == boltVersion &&
			native.Uint64(b[metaSize:]) == metaSum(b),
	}, nil
}

func metaSum(b []byte) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize])
	return sum.Sum64()
}

// isOlder reports whether a damaged meta is certainly not that of the transaction after the newest
// valid one.
func (m *boltMeta) isOlder(newest uint64) bool {
	if m.bytes == nil || m.txid+1 != newest {
		return false
	}
	// The damage may be the reason that it looks older.
	b := bytes.Clone(m.bytes)
	native.PutUint64(b[48:], newest+1)
	return native.Uint64(b[metaSize:]) != metaSum(b)
}

// readMetas reads both metas. The first gives the position of the second, which is otherwise searched.
func (f *File) readMetas() (first, second boltMeta, err error) {
	if first, err = f.readMeta(0); err != nil {
		return first, second, err
	}
	if first.valid {
		second, err = f.readMeta(first.pageSize)
		return first, second, err
	}
	for size := uint64(1 << 9); !second.valid && size <= 1<<20; size <<= 1 {
		m, err := f.readMeta(size)
		if err != nil {
			return first, second, err
		}
		if m.valid && m.pageSize == size {
			second = m
		}
	}
	return first, second, nil
}

// find finds the newest state of the file.
func (f *File) find() error {
	first, second, err := f.readMetas()
	if err != nil {
		return err
	}
	newest, other := first, second
	if !first.valid || (second.valid && second.txid > first.txid) {
		newest, other = second, first
	}
	switch {
	case !newest.valid:
		return f.Damage("meta pages", "neither is a valid bbolt meta page")
	case !other.valid && !other.isOlder(newest.txid):
		// A crash leaves a meta page in its old or its new state, because it is one sector of the
		// disk. So this page was complete and damaged later. The other one is older, and continuing
		// with it would lose acknowledged writes.
		return f.Damage("meta pages", fmt.Sprintf("one is valid, of transaction %d, but may not be the newest", newest.txid))
	case newest.pageSize < 512 || newest.pageSize&(newest.pageSize-1) != 0:
		return f.Damage("meta pages", fmt.Sprintf("page size %d", newest.pageSize))
	}
	f.pageSize, f.pages, f.root = newest.pageSize, newest.pages, newest.root
	if f.pages > f.size/f.pageSize {
		return f.Damage("its end", fmt.Sprintf("the file has %d bytes, its %d pages of %d bytes need more", f.size, f.pages, f.pageSize))
	}
	f.visited = make([]uint64, f.pages/64+1)
	return nil
}

// A PageID is the number of a page in the file. Zero is a small bucket inside another page.
type PageID uint64

func (id PageID) String() string {
	if id == 0 {
		return "a small bucket"
	}
	return fmt.Sprintf("page %d", uint64(id))
}

// A page is a node of a tree.
type page struct {
	id    PageID
	bytes []byte
	leaf  bool
	count int
}

// page returns the page of an id. Each page may be visited only once.
func (f *File) page(id uint64) (page, error) {
	where := PageID(id)
	if id < 2 || id >= f.pages {
		return page{}, f.Damage(where, "a page points to it, but there is none")
	}
	header, err := f.read(id*f.pageSize, f.pageSize)
	if err != nil {
		return page{}, err
	}
	length := 1 + uint64(native.Uint32(header[12:]))
	if native.Uint64(header) != id {
		return page{}, f.Damage(where, fmt.Sprintf("it says that it is page %d", native.Uint64(header)))
	}
	if length > f.pages-id {
		return page{}, f.Damage(where, fmt.Sprintf("its length of %d pages is more than there are", length))
	}
	for i := id; i < id+length; i++ {
		if f.visited[i/64]&(1<<(i%64)) != 0 {
			return page{}, f.Damage(where, fmt.Sprintf("page %d is used twice", i))
		}
		f.visited[i/64] |= 1 << (i % 64)
	}
	if length == 1 {
		return f.node(where, header)
	}
	whole, err := f.read(id*f.pageSize, length*f.pageSize)
	if err != nil {
		return page{}, err
	}
	return f.node(where, whole)
}

// node reads the header of a page or of a bucket that is stored inside one.
func (f *File) node(where PageID, b []byte) (page, error) {
	if len(b) < pageHeader {
		return page{}, f.Damage(where, "it is too short")
	}
	p := page{id: where, bytes: b, count: int(native.Uint16(b[10:]))}
	switch flags := native.Uint16(b[8:]); flags {
	case flagBranch:
	case flagLeaf:
		p.leaf = true
	default:
		return page{}, f.Damage(where, fmt.Sprintf("its kind is %#x, which is not that of a node", flags))
	}
	if pageHeader+p.count*elementSize > len(b) {
		return page{}, f.Damage(where, fmt.Sprintf("it has no room for its %d elements", p.count))
	}
	return p, nil
}

// An Element of a page is a key with its value, or a child of a branch.
type Element struct {
	Key, Value []byte
	Bucket     bool // the value is a bucket, an argument for Walk
	child      uint64
}

func (f *File) element(p page, i int) (Element, error) {
	start := pageHeader + i*elementSize
	b := p.bytes[start:]
	var e Element
	var pos, keySize, valueSize uint64
	if p.leaf {
		flags := native.Uint32(b)
		if flags > flagBucket {
			return Element{}, f.Damage(p.id, fmt.Sprintf("element %d has flags %#x", i, flags))
		}
		e.Bucket = flags == flagBucket
		pos, keySize, valueSize = uint64(native.Uint32(b[4:])), uint64(native.Uint32(b[8:])), uint64(native.Uint32(b[12:]))
	} else {
		pos, keySize = uint64(native.Uint32(b)), uint64(native.Uint32(b[4:]))
		e.child = native.Uint64(b[8:])
	}
	end := pos + keySize + valueSize
	if end > uint64(len(b)) {
		return Element{}, f.Damage(p.id, fmt.Sprintf("element %d is not inside the page", i))
	}
	e.Key, e.Value = b[pos:pos+keySize], b[pos+keySize:end]
	return e, nil
}
