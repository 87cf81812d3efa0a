package main

import (
	"encoding/json"
	"slices"
	"testing"
)

// The manual has every command that the help has, and every flag.
func TestDescribe(t *testing.T) {
	cmd, stderr := command(t, "__describe")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, stderr)
	}
	var root described
	if err := json.Unmarshal(out, &root); err != nil {
		t.Fatal(err)
	}
	seen := map[string]described{}
	var walk func(described)
	walk = func(d described) {
		seen[d.Path] = d
		if d.Short == "" || d.Usage == "" {
			t.Errorf("%s says nothing about itself: %+v", d.Path, d)
		}
		for _, c := range d.Commands {
			walk(c)
		}
	}
	walk(root)
	for path, flag := range map[string]describedFlag{
		"anykind":         {Name: "help", Shorthand: "h", Usage: "help for anykind"},
		"anykind serve":   {Name: "secure-port", Value: "uint16", Default: "6443"},
		"anykind version": {Name: "output", Shorthand: "o", Value: "string", Usage: "output format: json or yaml (default: text)"},
		"anykind crd try": {Name: "server", Shorthand: "s", Value: "string"},
	} {
		if !slices.ContainsFunc(seen[path].Flags, func(f describedFlag) bool {
			return f.Name == flag.Name && f.Shorthand == flag.Shorthand && (flag.Value == "" || f.Value == flag.Value) &&
				f.Default == flag.Default && (flag.Usage == "" || f.Usage == flag.Usage)
		}) {
			t.Errorf("%s has no flag %+v: %+v", path, flag, seen[path].Flags)
		}
	}
	if _, hidden := seen["anykind __describe"]; hidden {
		t.Error("it describes what is hidden")
	}
}
