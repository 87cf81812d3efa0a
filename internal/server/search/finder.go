package search

import "bytes"

// frequencies are the numbers of each byte in the searched text.
type frequencies [256]uint32

func (f *frequencies) count(text []byte) {
	for _, b := range text {
		f[b]++
	}
}

// rarely is the least average distance of a byte from its next occurrence at which a search for that byte is
// faster than bytes.Index.
const rarely = 32

// finder returns a function for the offset of the first occurrence of a word in a text, or -1. It looks for the
// rarest byte of the word. The first byte, for which bytes.Index looks, may be everywhere.
func (f *frequencies) finder(word []byte) func(text []byte) int {
	rare, total := 0, 0
	for i, b := range word {
		if f[b] < f[word[rare]] {
			rare = i
		}
	}
	for _, n := range f {
		total += int(n)
	}
	if int(f[word[rare]]) > total/rarely {
		return func(text []byte) int { return bytes.Index(text, word) }
	}
	return func(text []byte) int {
		for from := rare; from < len(text); {
			at := bytes.IndexByte(text[from:], word[rare])
			if at < 0 {
				return -1
			}
			if begin := from + at - rare; bytes.HasPrefix(text[begin:], word) {
				return begin
			}
			from += at + 1
		}
		return -1
	}
}
