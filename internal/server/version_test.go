package server

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	commit := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-11-22T12:00:00Z"}, {Key: "vcs.modified", Value: "true"},
	}
	type said struct{ version, commit, date, state string }
	for _, test := range []struct {
		name    string
		build   *debug.BuildInfo
		release string
		want    said
	}{
		{"without build info", nil, "", said{unknown, "", unknownDate, ""}},
		{"go run", &debug.BuildInfo{Main: debug.Module{Path: module, Version: unknown}}, "", said{unknown, "", unknownDate, ""}},
		{"with changes", &debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.1.0+dirty"}, Settings: commit}, "",
			said{"v0.1.0+dirty", "abc", "2026-11-22T12:00:00Z", "dirty"}},
		{"go install of a version", &debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.1.0"}}, "", said{"v0.1.0", "", unknownDate, ""}},
		{"the linker was told", &debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.1.0"}, Settings: commit}, "v1.0.0",
			said{"v1.0.0", "abc", "2026-11-22T12:00:00Z", "dirty"}},
		{"embedded: the commit is of another program", &debug.BuildInfo{
			Main: debug.Module{Path: "example.com/product"}, Settings: commit,
			Deps: []*debug.Module{{Path: "example.com/other", Version: "v9.0.0"}, {Path: module, Version: "v0.2.0"}},
		}, "", said{"v0.2.0", "", unknownDate, ""}},
	} {
		v := versionOf(test.build, test.release)
		if got := (said{v.Anykind, v.GitCommit, v.BuildDate, v.GitTreeState}); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
