package rules

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// A ban forbids the import of a path and everything below it.
type ban struct {
	path   string
	except []string // allowed paths, with everything below them
	why    string
}

// bans are the forbidden imports of the product. Tests may have them if the module has the
// dependency.
func bans() []ban {
	const ours = "this is what anykind is: write it, or test against it from a module under test/"
	return []ban{
		{path: "k8s.io/apiserver", except: []string{
			"k8s.io/apiserver/pkg/cel", "k8s.io/apiserver/pkg/apis/apiserver", "k8s.io/apiserver/pkg/apis/audit", "k8s.io/apiserver/pkg/authentication/cel", "k8s.io/apiserver/pkg/authorization/cel",
			"k8s.io/apiserver/pkg/sharding", // the grammar of shard selectors
			// interfaces of the CEL library for authorization
			"k8s.io/apiserver/pkg/authentication/user", "k8s.io/apiserver/pkg/authorization/authorizer",
		}, why: ours},
		{path: "k8s.io/apiextensions-apiserver", except: []string{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"}, why: ours},
		{path: "k8s.io/kube-aggregator", except: []string{"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"}, why: ours},
		{path: "k8s.io/kubernetes", why: ours},
		{path: "k8s.io/client-go", except: []string{"k8s.io/client-go/util/jsonpath"}, why: "the server needs only the JSONPath of kubectl from client-go"},
		{path: "k8s.io/klog", why: "log with log/slog, through the logger that was passed in"},
		{path: "log", except: []string{"log/slog"}, why: "log with log/slog, through the logger that was passed in"},
		{path: "text/template", why: "with a template the linker keeps every exported method of every type: 8 MB of program"},
		{path: "html/template", why: "pages are written with internal/server/page; see there"},
		{path: "github.com/stretchr/testify", why: "tests compare with go-cmp and say what they found"},
	}
}

func (b ban) forbids(importPath string) bool {
	for _, e := range b.except {
		if below(importPath, e) {
			return false
		}
	}
	return below(importPath, b.path)
}

func below(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

func TestBannedImports(t *testing.T) {
	for _, f := range goFiles(t) {
		if !f.inProduct() || f.isTest() {
			continue
		}
		for _, imported := range f.imports() {
			for _, b := range bans() {
				if b.forbids(imported) {
					t.Errorf("%s imports %s: %s", f.name, imported, b.why)
				}
			}
		}
	}
}

// Some packages may be imported by these packages only.
func TestImportsWithOnePlace(t *testing.T) {
	places := map[string][]string{
		"go.etcd.io/bbolt":                           {"internal/store/boltkv", "internal/store/history"},
		"github.com/spf13/cobra":                     {"cmd/anykind"},
		"github.com/prometheus/client_golang":        {"internal/object/histogram", "internal/server", "internal/server/aggregate", "internal/server/peer", "internal/server/rest", "internal/admission", "internal/builtin/allocation", "internal/builtin/certificates", "internal/registry/convert", "internal/access/audit", "internal/access/authn", "internal/access/fairness", "internal/access/authz/impersonation", "internal/access/authn/serviceaccount", "internal/access/authn/serviceaccount/external", "internal/access/authn/oidc", "internal/access/authz/chain", "internal/access/authz/webhook", "internal/network/configfile", "internal/network/egress/selector", "internal/network/webhook", "internal/network/remotecommand", "internal/controller", "internal/store/etcdkv", "internal/admission/webhook", "internal/admission/podsecurity", "internal/admission/manifest", "internal/admission/match", "internal/admission/policy", "internal/store/encrypt", "internal/store/encrypt/kms"},
		"sigs.k8s.io/apiserver-network-proxy":        {"internal/network/egress/selector"},
		"k8s.io/client-go/util/jsonpath":             {"internal/object/codec", "internal/builtin/admissionregistration"},
		module + "/internal/store/boltkv":            {"internal/app"},
		module + "/internal/store/memkv":             {"internal/app", "internal/controller/controllertest", "internal/admission/admissiontest"},
		"k8s.io/apimachinery/pkg/util/managedfields": {"internal/registry/apply", "internal/schema/crd/compile", "internal/schema/scale"},
	}
	for _, f := range goFiles(t) {
		if !f.inProduct() || f.isTest() {
			continue
		}
		for _, imported := range f.imports() {
			for path, folders := range places {
				if below(imported, path) && !slices.Contains(folders, f.folder()) {
					t.Errorf("%s imports %s, which is the affair of %s", f.name, imported, strings.Join(folders, " and "))
				}
			}
		}
	}
}

func TestBansForbidWhatIsBelowThem(t *testing.T) {
	b := ban{path: "k8s.io/apiserver", except: []string{"k8s.io/apiserver/pkg/cel"}}
	for path, want := range map[string]bool{
		"k8s.io/apiserver":                     true,
		"k8s.io/apiserver/pkg/registry":        true,
		"k8s.io/apiserver/pkg/cel":             false,
		"k8s.io/apiserver/pkg/cel/environment": false,
		"k8s.io/apiserver2":                    false,
	} {
		if got := b.forbids(path); got != want {
			t.Errorf("%s: forbidden is %v, want %v", path, got, want)
		}
	}
}

// parse returns a file with that source.
func parse(t *testing.T, source string) *file {
	t.Helper()
	f := &file{name: "p.go", data: []byte(source), set: token.NewFileSet()}
	var err error
	if f.syntax, err = parser.ParseFile(f.set, f.name, source, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		t.Fatal(err)
	}
	return f
}
