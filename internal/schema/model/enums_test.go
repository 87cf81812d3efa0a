package model

import (
	"strings"
	"testing"
)

func TestEnumDoc(t *testing.T) {
	doc := enumDoc([]string{"RollingUpdate", "Recreate"})
	if want := " - `\"Recreate\"` delete all old pods before creating new ones\n - `\"RollingUpdate\"` replace"; !strings.Contains(doc, want) {
		t.Errorf("got %s", doc)
	}
	if doc := enumDoc([]string{"b", "a"}); doc != "\n\nPossible enum values:\n - `\"a\"`\n - `\"b\"`" {
		t.Errorf("got %s", doc)
	}
}
