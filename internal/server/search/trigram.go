package search

// filterBits is the number of bits of a filter. A full chunk sets about half of them.
const filterBits = 4096

// A filter has a bit for each trigram of some texts. Several trigrams share a bit.
type filter [filterBits / 64]uint64

// A trigram is the number of its bit.
type trigram uint16

// trigramOf returns the trigram at the start of a text. The text has three bytes or more.
func trigramOf(text []byte) trigram {
	return trigram((uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16) * 0x9e3779b1 >> 20) // the golden ratio spreads them
}

// trigramsOf returns the trigrams of a word.
func trigramsOf(word []byte) (all []trigram) {
	for i := range len(word) - 2 {
		all = append(all, trigramOf(word[i:]))
	}
	return all
}

// add adds the trigrams of a text.
func (f *filter) add(text []byte) {
	for i := range len(text) - 2 {
		t := trigramOf(text[i:])
		f[t/64] |= 1 << (t % 64)
	}
}

// has reports whether a text may have all of the trigrams.
func (f *filter) has(all []trigram) bool {
	for _, t := range all {
		if f[t/64]>>(t%64)&1 == 0 {
			return false
		}
	}
	return true
}
