package server

import (
	"cmp"
	"encoding/json"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/kubernetes"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// minor returns the minor version of a release.
func minor(r gate.Release) string { return strconv.Itoa(int(r)) }

// A Version is the content of /version and the output of anykind version: the Kubernetes version,
// which clients use, and our own. BuildDate is the time of the commit, so that builds are
// reproducible.
type Version struct {
	version.Info
	Anykind string `json:"anykindVersion"`
}

// release is set by the linker in a program that is not built from a release tag: go build
// -ldflags '-X github.com/anykind/anykind/internal/server.release=v1.2.3'.
var release string

// BuildVersion returns the version of this program.
var BuildVersion = sync.OnceValue(func() Version {
	build, _ := debug.ReadBuildInfo()
	return versionOf(build, release)
})

// versionOf returns the version from the build information and the linker's release. build is nil
// if the program has none.
func versionOf(build *debug.BuildInfo, release string) Version {
	v := Version{
		Info: version.Info{
			Major:                 kubernetes.Major,
			Minor:                 kubernetes.Minor,
			EmulationMajor:        kubernetes.Major,
			EmulationMinor:        kubernetes.Minor,
			MinCompatibilityMajor: kubernetes.Major,
			MinCompatibilityMinor: minor(gate.Current - 1),
			GitVersion:            kubernetes.Version + "+anykind",
			BuildDate:             unknownDate,
			GoVersion:             runtime.Version(),
			Compiler:              runtime.Compiler,
			Platform:              runtime.GOOS + "/" + runtime.GOARCH,
		},
		Anykind: cmp.Or(release, ownVersion(build)),
	}
	if build == nil || build.Main.Path != module {
		return v // the commit, if any, belongs to another module
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			v.GitCommit = s.Value
		case "vcs.time":
			v.BuildDate = s.Value
		case "vcs.modified":
			v.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[s.Value]
		}
	}
	return v
}

const (
	module      = "github.com/anykind/anykind"
	unknownDate = "1970-01-01T00:00:00Z"
	unknown     = "(devel)"
)

// ownVersion returns the version of our module in a program, which may embed it.
func ownVersion(build *debug.BuildInfo) string {
	switch {
	case build == nil:
		return unknown
	case build.Main.Path == module:
		return cmp.Or(build.Main.Version, unknown)
	}
	for _, m := range build.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return unknown
}

// version returns the version for clients.
func (s *Server) version() Version {
	v := BuildVersion()
	if s.options.Version != "" {
		v.GitVersion = s.options.Version
	}
	v.EmulationMinor, v.MinCompatibilityMinor = minor(s.options.Gates.Emulated()), minor(s.options.Gates.Compatible())
	return v
}

func (s *Server) serveVersion(w http.ResponseWriter, r *http.Request) {
	err := codec.RouteOne(r, "application/json")
	if r.Method != http.MethodGet {
		err = status.NoSuchMethod()
	}
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	data, err := json.MarshalIndent(s.version(), "", "  ")
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}
