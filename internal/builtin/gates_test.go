package builtin

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
)

// docs/gates.md names the gates that change the server, and no other ones.
func TestGatesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/gates.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| ") {
			for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(line, -1) {
				documented[m[1]] = true
			}
		}
	}
	used := usedGates(t)
	for name := range used {
		if gate.IdleReason(gate.Name(name)) == "" && !documented[name] {
			t.Errorf("docs/gates.md lacks %s", name)
		}
	}
	for name := range documented {
		if !used[name] || gate.IdleReason(gate.Name(name)) != "" {
			t.Errorf("docs/gates.md has %s, which changes nothing", name)
		}
	}
}

// usedGates returns the gates with a constant, with fields in the tables of kinds, or with rules of default roles.
func usedGates(t *testing.T) map[string]bool {
	t.Helper()
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
	return used
}

// Each gate that has another default in a release that can be emulated, or that is not locked, is used, or stands in the
// list of idle gates. Fields of an idle gate are dropped as by default. Code for a gate can go when the gate is locked in
// every release that can be emulated.
func TestGatesAreUsedOrIdle(t *testing.T) {
	used := usedGates(t)
	text, err := os.ReadFile("../object/gate/gates.txt")
	if err != nil {
		t.Fatal(err)
	}
	changed := changedGates(t)
	lockedIn := regexp.MustCompile(`\b1\.(\d+) \w+ \w+ locked$`)
	for line := range strings.Lines(string(text)) {
		specs, _, _ := strings.Cut(strings.TrimSpace(line), " needs ")
		name, _, _ := strings.Cut(specs, " ")
		idle := gate.IdleReason(gate.Name(name)) != ""
		since := lockedIn.FindStringSubmatch(specs)
		if since == nil {
			if !idle && !used[name] {
				t.Errorf("%s changes nothing, and idle.txt has no reason", name)
			}
			continue
		}
		switch release, _ := strconv.Atoi(since[1]); {
		case changed[gate.Name(name)] && !idle && !used[name]:
			t.Errorf("%s changes nothing in an emulated release, and idle.txt has no reason", name)
		case release <= int(gate.Oldest) && used[name]:
			t.Errorf("%s is locked: nothing can change it", name)
		}
	}
}

// changedGates returns the gates with another default in a release that can be emulated.
func changedGates(t *testing.T) map[gate.Name]bool {
	t.Helper()
	changed := map[gate.Name]bool{}
	for release := gate.Oldest; release < gate.Current; release++ {
		gates, err := gate.Of(release.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(gates.Changed(), gates.Idle()...) {
			changed[name] = true
		}
	}
	return changed
}
