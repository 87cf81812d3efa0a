package server

import (
	"cmp"
	"encoding/json"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"

	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// The Kubernetes version whose API this is.
const (
	kubernetesMajor   = "1"
	kubernetesMinor   = "37"
	kubernetesVersion = "v1.37.1"
	// Release is that of the Go modules of Kubernetes.
	Release     = "v0.37.1"
	oldestMinor = "36"
)

// A Version is what /version and anykind version say: the Kubernetes version that clients
// go by, and our own. BuildDate is the time of the commit, so that building it again does not
// change it.
type Version struct {
	version.Info
	Anykind string `json:"anykindVersion"`
}

// release is the version that the linker was told, for a program that is not built from the tag
// of its release: go build -ldflags '-X github.com/anykind/anykind/internal/server.release=v1.2.3'.
var release string

// BuildVersion returns the version of this program.
var BuildVersion = sync.OnceValue(func() Version {
	build, _ := debug.ReadBuildInfo()
	return versionOf(build, release)
})

// versionOf is what the Go toolchain, and possibly the linker, wrote into a program. build is nil
// if the program does not have it.
func versionOf(build *debug.BuildInfo, release string) Version {
	v := Version{
		Info: version.Info{
			Major:                 kubernetesMajor,
			Minor:                 kubernetesMinor,
			EmulationMajor:        kubernetesMajor,
			EmulationMinor:        kubernetesMinor,
			MinCompatibilityMajor: kubernetesMajor,
			MinCompatibilityMinor: oldestMinor,
			GitVersion:            kubernetesVersion + "+anykind",
			BuildDate:             unknownDate,
			GoVersion:             runtime.Version(),
			Compiler:              runtime.Compiler,
			Platform:              runtime.GOOS + "/" + runtime.GOARCH,
		},
		Anykind: cmp.Or(release, ownVersion(build)),
	}
	if build == nil || build.Main.Path != module {
		return v // the commit, if there is one, is not ours
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

// ownVersion finds our module in a program, which may be one that embeds us.
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

// version is what clients are told.
func (s *Server) version() Version {
	v := BuildVersion()
	if s.options.Version != "" {
		v.GitVersion = s.options.Version
	}
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
