// Package apply changes an object by what a client sends instead of a whole
// one: a JSON patch, a JSON merge patch, a strategic merge patch.
//
// It knows the patch formats and their limits. It does not know schemas, where
// the object comes from, or whether the result is a valid one.
package apply

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/anykind/anykind/internal/codec"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/status"
)

// A Patch is a decoded patch. It may be applied many times.
type Patch struct {
	apply func(old object.Tree) (object.Tree, error)
	// Duplicates are the duplicate fields of the patch, and of a JSON patch the
	// unknown ones too, in the words of strict decoding.
	Duplicates []string
}

// Apply returns what the patch makes of old, which it does not change and shares
// nothing with.
func (p *Patch) Apply(old object.Tree) (object.Tree, error) { return p.apply(old) }

// Merge decodes a JSON merge patch (RFC 7386).
func Merge(data []byte) (*Patch, error) {
	patch, duplicates, err := decodeObject(data)
	if err != nil {
		return nil, err
	}
	return &Patch{Duplicates: duplicates, apply: func(old object.Tree) (object.Tree, error) {
		return merge(object.CloneTree(old), patch), nil
	}}, nil
}

// Strategic decodes a strategic merge patch for objects of the Go type that
// prototype is a pointer to.
func Strategic(data []byte, prototype any) (*Patch, error) {
	patch, duplicates, err := decodeObject(data)
	if err != nil {
		return nil, err
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(prototype)
	if err != nil {
		return nil, status.Internal(err)
	}
	return &Patch{Duplicates: duplicates, apply: func(old object.Tree) (object.Tree, error) {
		// The library changes both of its arguments.
		out, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(
			object.CloneTree(old), object.CloneTree(patch), meta)
		if err != nil {
			return nil, unprocessable()
		}
		return out, nil
	}}, nil
}

func decodeObject(data []byte) (object.Tree, []string, error) {
	patch, duplicates, err := codec.Decode(codec.JSON, data)
	switch {
	case err != nil && !json.Valid(data):
		return nil, nil, status.BadRequest("invalid JSON patch")
	case err != nil:
		return nil, nil, status.BadRequest("error decoding patch: %v", err)
	case patch == nil:
		return nil, nil, status.BadRequest("Invalid JSON Patch")
	}
	return patch, duplicates, nil
}

// merge merges patch into t, which it changes. What it takes from patch it
// copies.
func merge(t, patch object.Tree) object.Tree {
	for k, v := range patch {
		change, isTree := v.(object.Tree)
		switch {
		case v == nil:
			delete(t, k)
		case isTree:
			base, ok := t[k].(object.Tree)
			if !ok {
				base = make(object.Tree, len(change))
			}
			t[k] = merge(base, change)
		default:
			t[k] = object.Clone(v)
		}
	}
	return t
}
