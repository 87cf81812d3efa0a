package fairness

import (
	"crypto/sha256"
	"encoding/binary"
)

// mostCards is the largest size of a hand: validation limits a hand to 60 bits of the hash.
const mostCards = 15

// deal fills a hand with different cards of a deck, chosen by a hash.
func deal(hand []int, hash uint64, deck int) []int {
	for i := range hand {
		size := uint64(deck - i)
		card := int(hash % size)
		hash /= size
		hand[i] = card
	}
	// Each number counts the cards that are left, in an order where cards dealt before come last.
	var drawn [mostCards]int
	copy(drawn[:], hand)
	for i := range hand {
		card := drawn[i]
		for j := i - 1; j >= 0; j-- {
			if card >= drawn[j] {
				card++
			}
		}
		hand[i] = card
	}
	return hand
}

// hashOf returns the hash of a flow.
func hashOf(schema, distinguisher string) uint64 {
	var space [256]byte
	b := append(append(append(space[:0], schema...), 0), distinguisher...)
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}
