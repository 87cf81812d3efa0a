package celpolicy

import (
	"crypto/sha256"
	"encoding/binary"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/anykind/anykind/internal/object/intern"
)

// Shared lets equal policies share their compiled expressions. It holds only weak references. The zero
// value is ready for use.
type Shared struct {
	compilers intern.Table[[sha256.Size]byte, Compiler]
}

// A programKey identifies a program among those with the same variables.
type programKey struct {
	text, returns string
	Declared
}

// Compiler returns the Compiler for the expressions of a stored policy. params declares the variable
// params.
func (s *Shared) Compiler(variables []admissionregistrationv1.Variable, params bool) *Compiler {
	key := keyOfVariables(variables, params)
	if known := s.compilers.Get(key); known != nil {
		return known
	}
	c := WithVariables()
	for _, v := range variables {
		c.StoredVariable(v.Name, Expression{Text: v.Expression, Declared: Declared{Params: params, Authorizer: true}})
	}
	return s.compilers.Put(key, c)
}

func keyOfVariables(variables []admissionregistrationv1.Variable, params bool) [sha256.Size]byte {
	var all []byte
	if params {
		all = append(all, 1)
	}
	for _, v := range variables {
		for _, text := range []string{v.Name, v.Expression} {
			all = binary.AppendUvarint(all, uint64(len(text)))
			all = append(all, text...)
		}
	}
	return sha256.Sum256(all)
}
