package main

import (
	"strings"
	"testing"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/wire"
)

// A reduced sequence keeps the necessary steps, and the necessary fields of the last body.
func TestReduce(t *testing.T) {
	var s wire.Sequence
	for _, body := range []string{"a", "needed", "b", "c", `{"keep":{"this":1,"not":2},"nor":3}`, "after"} {
		s.Steps = append(s.Steps, wire.Step{ID: len(s.Steps) + 1, Body: []byte(body)})
	}
	tries := 0
	short := reduce(s, 4, func(s wire.Sequence) bool {
		tries++
		var all []string
		for _, step := range s.Steps {
			all = append(all, string(step.Body))
		}
		text := strings.Join(all, " ")
		return strings.Contains(text, "needed") && strings.Contains(text, `"this":1`)
	})
	if len(short.Steps) != 2 || string(short.Steps[0].Body) != "needed" || string(short.Steps[1].Body) != `{"keep":{"this":1}}` {
		t.Errorf("reduced to %v", short.Steps)
	}
	if tries > attempts {
		t.Errorf("%d tries", tries)
	}
	if len(s.Steps) != 6 || len(s.Steps[4].Body) < 30 {
		t.Error("the sequence itself was changed")
	}
}

// The list in the repository is valid.
func TestKnownIsInOrder(t *testing.T) {
	if _, err := judge.ReadKnown("known.txt"); err != nil {
		t.Error(err)
	}
}

func TestChoose(t *testing.T) {
	if kinds, err := choose("patch,watch"); err != nil || len(kinds) != 2 {
		t.Errorf("%v, %v", kinds, err)
	}
	if _, err := choose("bogus"); err == nil {
		t.Error("a kind of request that is none")
	}
}
