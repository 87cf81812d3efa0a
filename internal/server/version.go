package server

import (
	"encoding/json"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"

	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/internal/codec"
	"github.com/anykind/anykind/internal/request"
	"github.com/anykind/anykind/internal/status"
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

// A Version is what /version says: the Kubernetes version that clients go by,
// and our own.
type Version struct {
	version.Info
	Anykind string `json:"anykindVersion"`
}

// BuildVersion returns the version of this program.
var BuildVersion = sync.OnceValue(func() Version {
	v := Version{
		Info: version.Info{
			Major:                 kubernetesMajor,
			Minor:                 kubernetesMinor,
			EmulationMajor:        kubernetesMajor,
			EmulationMinor:        kubernetesMinor,
			MinCompatibilityMajor: kubernetesMajor,
			MinCompatibilityMinor: oldestMinor,
			GitVersion:            kubernetesVersion + "+anykind",
			BuildDate:             "1970-01-01T00:00:00Z",
			GoVersion:             runtime.Version(),
			Compiler:              runtime.Compiler,
			Platform:              runtime.GOOS + "/" + runtime.GOARCH,
		},
		Anykind: "(devel)",
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Anykind = ownVersion(build)
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
})

const module = "github.com/anykind/anykind"

// ownVersion finds our module in a program, which may be one that embeds us.
func ownVersion(build *debug.BuildInfo) string {
	if build.Main.Path == module && build.Main.Version != "" {
		return build.Main.Version
	}
	for _, m := range build.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return "(devel)"
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
	said := BuildVersion()
	if s.options.Version != "" {
		said.GitVersion = s.options.Version
	}
	data, err := json.MarshalIndent(said, "", "  ")
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}
