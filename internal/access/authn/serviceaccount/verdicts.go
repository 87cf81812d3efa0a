package serviceaccount

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
)

// maxVerdicts bounds the cached verdicts. Valid and invalid tokens are counted apart.
const maxVerdicts = 8192

// A tokenID is a hash of a token, keyed per process: it discloses nothing about the token, and no
// client can choose a collision.
type tokenID [sha256.Size]byte

// hashKey is the key of tokenIDs in this process.
var hashKey = sync.OnceValue(func() (key [sha256.Size]byte) {
	_, _ = rand.Read(key[:]) // never fails
	return key
})

// idOf hashes a token. A token of usual length causes no allocation.
func idOf(token string) tokenID {
	var space [3 << 10]byte
	key := hashKey()
	return sha256.Sum256(append(append(space[:0], key[:]...), token...))
}
