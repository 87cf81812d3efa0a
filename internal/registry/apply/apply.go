// Package apply applies patches to objects: JSON patch, JSON merge patch, strategic merge
// patch and server-side apply. It keeps metadata.managedFields.
//
// It knows the patch formats, their limits, and the types of fields. It does not know where
// an object comes from, or whether the result is valid.
package apply

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/status"
)

// A Patch is a decoded patch. It may be applied many times.
type Patch struct {
	apply func(old object.Tree) (object.Tree, error)
	// normalize brings the result of apply into the form of a decoded object. It may be nil.
	normalize func(t object.Tree)
	// Duplicates are the duplicate fields of the patch, and the unknown fields of a JSON patch, in the
	// words of strict decoding.
	Duplicates []string
	// Wrong is a further error for clients with strict field validation.
	Wrong error
	// Shown returns the object that error messages show. If it is nil, they show the patched object.
	Shown func() string
}

// Apply returns old with the patch applied. It does not change old and shares nothing with it.
func (p *Patch) Apply(old object.Tree) (object.Tree, error) {
	t, err := p.apply(old)
	if err == nil && p.normalize != nil {
		p.normalize(t)
	}
	return t, err
}

// Raw is Apply for messages: a float without a fraction stays a float, where Apply makes it an
// integer.
func (p *Patch) Raw(old object.Tree) (object.Tree, error) { return p.apply(old) }

// Merge decodes a JSON merge patch (RFC 7386).
func Merge(data []byte) (*Patch, error) {
	patch, duplicates, err := decodeObject(data, "error decoding patch: %v")
	switch {
	case err != nil:
		return nil, err
	case patch == nil:
		return nil, status.BadRequest("Invalid JSON Patch")
	}
	return &Patch{Duplicates: duplicates, apply: func(old object.Tree) (object.Tree, error) {
		return merge(object.CloneTree(old), patch), nil
	}}, nil
}

// Strategic decodes a strategic merge patch for objects of the Go type that prototype points to.
// Unlike in a merge patch, null is a valid patch, which changes nothing. A patch cannot change
// apiVersion and kind.
func Strategic(data []byte, prototype any) (*Patch, error) {
	patch, duplicates, err := decodeObject(data, "%v")
	if err != nil {
		return nil, err
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(prototype)
	if err != nil {
		return nil, status.Internal(err)
	}
	used := patch
	shown := func() string { return fmt.Sprintf("%+v", used) }
	return &Patch{Duplicates: duplicates, Shown: shown, normalize: func(t object.Tree) { integers(t) }, apply: func(old object.Tree) (object.Tree, error) {
		// The library changes both of its arguments. Messages show the patch as changed.
		used = object.CloneTree(patch)
		out, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(object.CloneTree(old), used, meta)
		if err != nil {
			return nil, misshapen(err)
		}
		for _, name := range []string{"apiVersion", "kind"} {
			if _, ok := out[name].(string); ok || out[name] == nil {
				out[name] = old[name]
			}
		}
		return out, nil
	}}, nil
}

// integers replaces floats without a fraction in an object or a list by integers: 1.0 by 1. Kubernetes
// decodes a strategic merge into a Go type, whose integer fields accept such floats.
func integers(v any) {
	switch v := v.(type) {
	case object.Tree:
		for k, field := range v {
			if n, ok := integer(field); ok {
				v[k] = n
			} else {
				integers(field)
			}
		}
	case []any:
		for i, item := range v {
			if n, ok := integer(item); ok {
				v[i] = n
			} else {
				integers(item)
			}
		}
	}
}

// integer returns the integer for a float without a fraction.
func integer(v any) (int64, bool) {
	f, ok := v.(float64)
	n := int64(f)
	return n, ok && float64(n) == f && f < math.MaxInt64
}

// misshapen returns the error for a strategic merge patch that the library rejects. Kubernetes uses
// the same words, but answers most of them with an internal error.
func misshapen(err error) error {
	switch err {
	case mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat:
		return status.BadRequest("%v", err)
	case mergepatch.ErrNoListOfLists, mergepatch.ErrPatchContentNotMatchRetainKeys:
		return unprocessable()
	}
	refused := unprocessable()
	refused.ErrStatus.Message = strings.TrimSpace(err.Error())
	return refused
}

// decodeObject decodes a patch that starts as an object. Invalid JSON is rejected in the words of the
// kind of patch.
func decodeObject(data []byte, words string) (object.Tree, []string, error) {
	t, duplicates, err := codec.Decode(codec.JSON, data)
	switch {
	case err == nil:
		return t, duplicates, nil
	case !json.Valid(data):
		return nil, nil, status.BadRequest("invalid JSON patch")
	default:
		return nil, nil, status.BadRequest(words, err)
	}
}

// merge merges patch into t, which it changes, and copies the values of patch. A null removes a field,
// also inside lists, except in a list that replaces an object. Kubernetes' library does so; RFC 7386
// does not.
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
			_, wasTree := t[k].(object.Tree)
			t[k] = object.Clone(v)
			if !wasTree {
				dropNulls(t[k])
			}
		}
	}
	return t
}

// dropNulls drops the fields in v that are null.
func dropNulls(v any) {
	switch v := v.(type) {
	case object.Tree:
		for k, e := range v {
			if e == nil {
				delete(v, k)
				continue
			}
			dropNulls(e)
		}
	case []any:
		for _, e := range v {
			dropNulls(e)
		}
	}
}
