package serviceaccount

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
)

// maxVerdicts is the guaranteed size of the cache. It holds up to twice as many.
const maxVerdicts = 4096

// A tokenID is a hash of a token, keyed per process: it discloses nothing about the token, and no
// client can choose a collision.
type tokenID [sha256.Size]byte

// verdicts caches the verdicts on the last used tokens. It keeps no token.
type verdicts struct {
	mu            sync.RWMutex
	recent, older map[tokenID]*verdict
}

// hashKey is the key of tokenIDs in this process.
var hashKey = sync.OnceValue(func() (key [sha256.Size]byte) {
	_, _ = rand.Read(key[:]) // never fails
	return key
})

// id hashes a token. A token of usual length causes no allocation.
func (*verdicts) id(token string) tokenID {
	var space [3 << 10]byte
	key := hashKey()
	return sha256.Sum256(append(append(space[:0], key[:]...), token...))
}

// find returns the verdict on a token, or nil.
func (v *verdicts) find(id tokenID) *verdict {
	v.mu.RLock()
	found := v.recent[id]
	old := found == nil && v.older[id] != nil
	v.mu.RUnlock()
	if !old {
		return found
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if found = v.older[id]; found != nil {
		v.put(id, found)
	}
	return found
}

// add caches a verdict.
func (v *verdicts) add(id tokenID, of *verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.put(id, of)
}

// put adds a verdict to the recent ones. A full map of recent verdicts replaces the older ones.
func (v *verdicts) put(id tokenID, of *verdict) {
	if len(v.recent) >= maxVerdicts {
		v.recent, v.older = nil, v.recent
	}
	if v.recent == nil {
		v.recent = map[tokenID]*verdict{}
	}
	v.recent[id] = of
}
