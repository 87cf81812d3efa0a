package serviceaccount

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
)

// maxVerdicts is how many verdicts are kept for certain. Up to twice as many are.
const maxVerdicts = 4096

// A tokenID is a hash of a token with a key, which is another one in every process: nobody
// can tell from it what the token is, or make one that has the same.
type tokenID [sha256.Size]byte

// verdicts are those of the tokens that were used last. They keep no token.
type verdicts struct {
	mu            sync.RWMutex
	recent, older map[tokenID]*verdict
}

// hashKey is what makes tokenIDs those of this process.
var hashKey = sync.OnceValue(func() (key [sha256.Size]byte) {
	_, _ = rand.Read(key[:]) // never fails
	return key
})

// id hashes a token. One that has a usual length costs no allocation.
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

// add keeps a verdict.
func (v *verdicts) add(id tokenID, of *verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.put(id, of)
}

// put adds a verdict to the recent ones. When they are many, they are the older ones, and
// those that were are forgotten.
func (v *verdicts) put(id tokenID, of *verdict) {
	if len(v.recent) >= maxVerdicts {
		v.recent, v.older = nil, v.recent
	}
	if v.recent == nil {
		v.recent = map[tokenID]*verdict{}
	}
	v.recent[id] = of
}
