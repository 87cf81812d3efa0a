package celpolicy

import (
	"crypto/sha256"
	"encoding/binary"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/anykind/anykind/internal/object/intern"
)

// Shared lets policies that say the same share what was compiled for them. It keeps nothing
// alive. The zero value is ready.
type Shared struct {
	compilers intern.Table[[sha256.Size]byte, Compiler]
}

// A programKey says all of a program that is compiled with given variables.
type programKey struct {
	text, returns string
	Declared
}

// Compiler returns the Compiler of the expressions of a stored policy. params says that it has
// parameters.
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
