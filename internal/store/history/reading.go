package history

import (
	"bytes"
	"encoding/binary"
	"math"
	"sync"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/kv"
)

func number(n int64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(n)) }

// runKey returns the key of a run.
func runKey(id []byte, revision int64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 16), id...), uint64(revision))
}

func firstOf(k []byte) int64 { return int64(binary.BigEndian.Uint64(k[len(k)-8:])) }

// before moves a cursor to the last entry whose key is less than a key.
func before(c *bolt.Cursor, key []byte) (k, v []byte) {
	if next, _ := c.Seek(key); next == nil {
		return c.Last()
	}
	return c.Prev()
}

// runAt returns the run of a key with the version at a revision, nil if all its versions are later.
func (r *reading) runAt(key string, id []byte, revision int64) (*run, error) {
	k, v := before(r.runs.Cursor(), runKey(id, revision+1))
	if !bytes.HasPrefix(k, id) {
		return nil, nil
	}
	return r.decode(key, k, v)
}

// lastRun returns the newest run of a key, or nil.
func (r *reading) lastRun(key string, id []byte) (*run, error) {
	return r.runAt(key, id, math.MaxInt64-1)
}

// decode returns a run that is stored under k.
func (r *reading) decode(key string, k, v []byte) (*run, error) {
	body, ok := unsummed(k, v)
	if !ok {
		return nil, r.damage(firstOf(k), "a run of the history does not match its checksum")
	}
	name := cached{string(k), binary.BigEndian.Uint32(v)}
	if found := r.cache.get(name); found != nil {
		return found, nil
	}
	if r.seal != nil {
		body = r.seal.Decode(r.ctx, key, body)
	}
	data, err := unpack(body)
	if err != nil {
		if r.seal != nil {
			return nil, r.damage(firstOf(k), "a run of the history cannot be decrypted, or is damaged")
		}
		return nil, r.damage(firstOf(k), err.Error())
	}
	found, err := decodeRun(data)
	if err != nil {
		return nil, r.damage(firstOf(k), "a run of the history makes no sense")
	}
	r.cache.put(name, found, len(data))
	return found, nil
}

// A past is the state of a key at a revision, as the file knows it.
type past struct {
	known  bool // the file has a version then
	absent bool // the key had no value
	record kv.Record
}

// past returns the state of a key at a revision.
func (r *reading) past(key string, revision int64) (past, error) {
	id := r.keys.Get([]byte(key))
	if id == nil {
		return past{}, nil
	}
	found, err := r.runAt(key, id, revision)
	if err != nil {
		return past{}, err
	}
	if found == nil {
		return past{known: true, absent: true}, nil // its first version is later
	}
	i := found.at(revision)
	value, err := found.value(i)
	if err != nil {
		return past{}, r.damage(found.versions[i].revision, "a run of the history makes no sense")
	}
	p := past{known: true, absent: value == nil}
	if value != nil {
		p.record = kv.Record{Key: key, Value: bytes.Clone(value), Revision: found.versions[i].revision}
	}
	return p, nil
}

// A cache has the last runs that were read, unpacked.
type cache struct {
	mu    sync.Mutex
	runs  map[cached]*run
	order []cached
	sizes []int
	size  int
}

// cached names a run by its key and its checksum.
type cached struct {
	key string
	sum uint32
}

const maxCached = 4 << 20

func (c *cache) get(name cached) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[name]
}

func (c *cache) put(name cached, r *run, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs == nil {
		c.runs = map[cached]*run{}
	}
	if c.runs[name] != nil || size > maxCached/4 {
		return
	}
	c.runs[name] = r
	c.order, c.sizes, c.size = append(c.order, name), append(c.sizes, size), c.size+size
	for c.size > maxCached {
		delete(c.runs, c.order[0])
		c.size -= c.sizes[0]
		c.order, c.sizes = c.order[1:], c.sizes[1:]
	}
}
