package celrule

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"runtime"
	"slices"

	"github.com/anykind/anykind/internal/object/intern"
)

// Shared lets schemas with equal places share their compiled rules, and limits concurrent long
// evaluations. It holds only weak references. Nil shares nothing.
type Shared struct {
	nodes intern.Table[sum, node]
	slots chan struct{} // for long evaluations
}

// NewShared returns an empty Shared. Half of the processors are reserved for other work than long
// evaluations.
func NewShared() *Shared { return &Shared{slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))} }

// long returns the slots of concurrent long evaluations.
func (s *Shared) long() chan struct{} {
	if s == nil {
		return nil
	}
	return s.slots
}

// node returns a node equal to n: an existing one, or n.
func (s *Shared) node(n *node) *node {
	if s == nil || !n.ruled {
		return n
	}
	return s.nodes.Put(n.sum, n)
}

// Len returns the number of different places with rules in use.
func (s *Shared) Len() int { return s.nodes.Len() }

// A sum is the same for nodes that are the same to expressions.
type sum [16]byte

// hash computes the sum of a node from the nodes below it.
func (n *node) hash(root bool) sum {
	buf := make([]byte, 0, 256)
	text := func(s string) {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	flag := func(b bool) {
		if b {
			buf = append(buf, 1)
		} else {
			buf = append(buf, 0)
		}
	}
	child := func(c *node) {
		flag(c != nil)
		if c != nil {
			buf = append(buf, c.sum[:]...)
		}
	}
	buf = append(buf, byte(n.kind))
	for _, b := range []bool{root, n.nullable, n.preserve, n.embedded, n.hasDefault} {
		flag(b)
	}
	text(n.typeName)
	text(n.listType)
	buf = binary.AppendVarint(buf, n.size)
	buf = binary.AppendVarint(buf, n.least)
	buf = binary.AppendUvarint(buf, uint64(len(n.mapKeys)))
	for _, k := range n.mapKeys {
		text(k)
	}
	child(n.items)
	child(n.additional)
	for _, name := range slices.Sorted(maps.Keys(n.properties)) {
		text(name)
		child(n.properties[name])
	}
	for _, r := range n.rules {
		text("rule")
		text(r.Rule)
		text(r.Message)
		text(r.MessageExpression)
		text(r.where)
		flag(r.optionalOld())
		flag(r.Reason != nil)
		if r.Reason != nil {
			text(string(*r.Reason))
		}
	}
	whole := sha256.Sum256(buf)
	return sum(whole[:16])
}
