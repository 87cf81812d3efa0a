package server

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/kubernetes"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/server/page"
)

// zGroup is the group of the objects in /statusz and /flagz.
const zGroup = "config.k8s.io"

// zVersions are their versions.
var zVersions = []string{"v1beta1", "v1alpha1"}

// A zPage is a diagnostic page of a Kubernetes component: text for people, and an object for
// clients that request its group, version and kind.
type zPage struct {
	kind string
	text func(io.Writer)
	fill func(*zObject)
}

// A zObject is a Statusz or a Flagz. Both versions have the same fields.
type zObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	StartTime        *metav1.Time      `json:"startTime,omitempty"`
	UptimeSeconds    *int64            `json:"uptimeSeconds,omitempty"`
	GoVersion        string            `json:"goVersion,omitempty"`
	BinaryVersion    string            `json:"binaryVersion,omitempty"`
	EmulationVersion string            `json:"emulationVersion,omitempty"`
	Paths            []string          `json:"paths,omitempty"`
	Flags            map[string]string `json:"flags,omitempty"`
}

// ServeHTTP answers in the format that the client accepts.
func (p zPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, version := range zVersions {
		if f, ok := codec.AcceptAs(r, zGroup, version, p.kind); ok && f.Media != codec.Protobuf {
			p.serveObject(w, r, f, version)
			return
		}
	}
	accept := strings.TrimSpace(r.Header.Get("Accept"))
	plain := func(c codec.Clause) bool { return c.Params["as"] == "" && c.Matches("text", "plain") }
	if accept != "" && !slices.ContainsFunc(codec.ParseAccept(accept), plain) {
		request.Fail(w, r, status.NotAcceptable("application/json", "application/yaml", "text/plain"))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "\napiserver %s\nThis page is for people. Programs ask for a %s of %s.\n", strings.ToLower(p.kind), p.kind, zGroup)
	p.text(w)
}

func (p zPage) serveObject(w http.ResponseWriter, r *http.Request, f codec.Format, version string) {
	o := zObject{TypeMeta: metav1.TypeMeta{Kind: p.kind, APIVersion: zGroup + "/" + version}, ObjectMeta: metav1.ObjectMeta{Name: component}}
	p.fill(&o)
	doc, err := json.Marshal(&o)
	if err == nil {
		doc, err = f.Render(doc)
	}
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", fmt.Sprintf("%s;g=%s;v=%s;as=%s", f.ContentType(), zGroup, version, p.kind))
	if version == "v1alpha1" {
		h.Set("Warning", fmt.Sprintf(`299 - "This version of the %s endpoint is deprecated. Please use a newer version."`, strings.ToLower(p.kind)))
	}
	_, _ = w.Write(doc)
}

// zVersion returns the group and version of the requested object, or "".
func zVersion(r *http.Request) (group, version string) {
	for _, kind := range []string{"Statusz", "Flagz"} {
		for _, v := range zVersions {
			if _, ok := codec.AcceptAs(r, zGroup, v, kind); ok {
				return zGroup, v
			}
		}
	}
	return "", ""
}

// zPaths returns the diagnostic paths in /statusz.
func (s *Server) zPaths() []string {
	paths := []string{"/healthz", "/livez", "/metrics", "/readyz", "/version"}
	for _, z := range s.zpages() {
		paths = append(paths, z.Path)
	}
	slices.Sort(paths)
	return paths
}

// statusz returns the page with the version and the uptime.
func (s *Server) statusz() http.Handler {
	v := s.version()
	binary, emulated := kubernetes.Number, v.EmulationMajor+"."+v.EmulationMinor
	return zPage{"Statusz", func(w io.Writer) {
		up := int(time.Since(s.started).Seconds())
		fmt.Fprintf(w, "\nStarted: %s\nUp: %d hr %02d min %02d sec\nGo version: %s\nBinary version: %s\nEmulation version: %s\nPaths: %s\n",
			s.started.UTC().Format(time.UnixDate), up/3600, up/60%60, up%60, v.GoVersion, binary, emulated, strings.Join(s.zPaths(), " "))
	}, func(o *zObject) {
		up := int64(time.Since(s.started).Seconds())
		o.StartTime, o.UptimeSeconds = &metav1.Time{Time: s.started}, &up
		o.GoVersion, o.BinaryVersion, o.EmulationVersion, o.Paths = v.GoVersion, binary, emulated, s.zPaths()
	}}
}

// flagz returns the page with the values of the flags.
func (s *Server) flagz() http.Handler {
	flags := s.options.FlagValues
	return zPage{"Flagz", func(w io.Writer) {
		for _, name := range slices.Sorted(maps.Keys(flags)) {
			fmt.Fprintf(w, "%s=%s\n", name, flags[name])
		}
	}, func(o *zObject) { o.Flags = flags }}
}

// Paths for flags that can be changed at run time.
const (
	flagsPage     = "/debug/flags"
	verbosityPage = "/debug/flags/v"
)

// serveFlags lists those flags.
func serveFlags(w http.ResponseWriter, _ *http.Request) {
	p := page.New("anykind: flags")
	p.Add("<p>PUT a number to %s to set the log verbosity.</p>\n", verbosityPage)
	p.Serve(w)
}

// maxVerbosity limits the body of a PUT to verbosityPage.
const maxVerbosity = 64

// serveVerbosity sets the log level, as kube-apiserver does.
func (s *Server) serveVerbosity(w http.ResponseWriter, r *http.Request) {
	answer := func(code int, text string) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(code)
		fmt.Fprintln(w, text)
	}
	if r.Method != http.MethodPut || s.options.SetVerbosity == nil {
		answer(http.StatusNotAcceptable, "unsupported http method")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxVerbosity))
	if err != nil {
		answer(http.StatusBadRequest, "error reading request body: "+err.Error())
		return
	}
	const bits = 32
	level, err := strconv.ParseUint(string(body), 10, bits-1)
	if err != nil {
		answer(http.StatusBadRequest, err.Error())
		return
	}
	s.options.SetVerbosity(int(level))
	answer(http.StatusOK, fmt.Sprintf("successfully set klog.logging.verbosity to %d", level))
}
