package plugin

import (
	"bytes"
	"encoding/binary"
	"os"
)

// A program of Go has a block with its version and its modules, as text after their lengths. blockStart begins it.
// debug/buildinfo finds the block by the headers of the program, with a parser for each system: 300 kB of code.
var blockStart = []byte("\xff Go buildinf:")

const (
	blockAlign  = 16
	blockHeader = 32
	inlineTexts = 2 // a flag: the texts follow the header
)

// ours reports whether a file is any version of this program.
func ours(path string) bool {
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	for at := 0; ; at += blockAlign {
		next := bytes.Index(data[at:], blockStart)
		if next < 0 {
			return false
		}
		if at += next; at%blockAlign == 0 {
			return bytes.Contains(modules(data[at:]), []byte("\nmod\t"+module+"\t"))
		}
		at -= at % blockAlign
	}
}

// modules returns the modules of a block, or nil.
func modules(block []byte) []byte {
	if len(block) < blockHeader || block[len(blockStart)+1]&inlineTexts == 0 {
		return nil
	}
	_, rest := text(block[blockHeader:]) // the version of Go
	found, _ := text(rest)
	return found
}

// text returns the text at the beginning of data, and the rest.
func text(data []byte) (found, rest []byte) {
	length, n := binary.Uvarint(data)
	if n <= 0 || length > uint64(len(data)-n) {
		return nil, nil
	}
	return data[n : n+int(length)], data[n+int(length):]
}
