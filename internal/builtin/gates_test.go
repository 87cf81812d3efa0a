package builtin

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
)

// Each gate that is not locked has a constant, fields in the tables of kinds, or rules in the tables of
// default roles, or stands in the list of idle
// gates. Fields of an idle gate are dropped as by default.
func TestGatesAreUsedOrIdle(t *testing.T) {
	used := map[string]bool{}
	read := func(pattern string, find *regexp.Regexp) {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range find.FindAllStringSubmatch(string(text), -1) {
				used[m[1]] = true
			}
		}
	}
	read("../object/gate/names.go", regexp.MustCompile(`Name = "(\w+)"`))
	inTables := regexp.MustCompile(`\bgate=(\w+)`)
	read("rule/types/*.txt", inTables)
	read("../access/authz/rbac/defaults/*.txt", inTables)
	text, err := os.ReadFile("../object/gate/gates.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		specs, _, _ := strings.Cut(strings.TrimSpace(line), " needs ")
		name, _, _ := strings.Cut(specs, " ")
		idle := gate.IdleReason(gate.Name(name)) != ""
		switch locked := strings.HasSuffix(specs, " locked"); {
		case locked && (idle || used[name]):
			t.Errorf("%s is locked: nothing can change it", name)
		case !locked && !idle && !used[name]:
			t.Errorf("%s changes nothing, and idle.txt has no reason", name)
		}
	}
}
