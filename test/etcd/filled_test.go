package etcd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/kubernetes"
	"github.com/anykind/anykind/internal/store/encrypt/kms/kmstest"
	"github.com/anykind/anykind/internal/store/etcdsnapshot"
	"github.com/anykind/anykind/test/builtin/corpus"
	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

var filled = flag.String("filled", "", "version of Kubernetes, such as v1.34.4: build its published kube-apiserver and the one of this release, fill etcds with them, and open snapshots")

// everything enables all versions of all kinds.
var everything = []string{"--runtime-config=api/all=true", "--feature-gates=AllAlpha=true,AllBeta=true"}

// refusing are admission plugins that reject objects of the corpus, or others because of these.
var refusing = []string{
	"LimitRanger", "MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "Priority", "ResourceQuota", "ServiceAccount",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
}

// corpusNamespace is the namespace to which objects of the corpus refer.
const corpusNamespace = "place"

// A snapshot of an etcd that a published kube-apiserver filled is served as that kube-apiserver serves it: object by object, in each
// version of each resource. So it is when the objects are encrypted. A kube-apiserver of this release over the etcd of an older
// one serves the same, too.
func TestFilledSnapshot(t *testing.T) {
	if *filled == "" {
		t.Skip("building kube-apiservers takes minutes; make snapshots does")
	}
	for _, version := range []string{*filled, kubernetes.Version} {
		t.Run(version, func(t *testing.T) {
			known := newExceptions(version)
			t.Run("plain", func(t *testing.T) { openFilled(t, version, known) })
			t.Run("encrypted", func(t *testing.T) {
				plugin, err := kmstest.Start(filepath.Join(t.TempDir(), "kms.sock"))
				if err != nil {
					t.Fatal(err)
				}
				defer plugin.Stop()
				config := filepath.Join(t.TempDir(), "encryption.yaml")
				if err := os.WriteFile(config, fmt.Appendf(nil, encryption, plugin.Endpoint()), 0o600); err != nil {
					t.Fatal(err)
				}
				openFilled(t, version, known, "--encryption-provider-config="+config)
			})
			known.stale(t)
		})
	}
}

// openFilled fills an etcd with a kube-apiserver, takes a snapshot of it, and compares the lists of the kube-apiserver with those of
// the opened and of the restored snapshot.
func openFilled(t *testing.T, version string, known *exceptions, encryption ...string) {
	built, err := program.KubeAPIServerOf(version)
	if err != nil {
		t.Fatal(err)
	}
	current, err := program.KubeAPIServer() // before the start of the other one, which keeps a revision for five minutes
	if err != nil {
		t.Fatal(err)
	}
	m := StartMember(t)
	flags := slices.Concat(everything, encryption)
	kube := startProgram(t, built, m.Client, append([]string{
		"--allow-privileged", "--service-cluster-ip-range=10.0.0.0/24,fd00::/112", "--disable-admission-plugins=" + strings.Join(refusing, ","),
	}, flags...)...)
	write(t, kube, kube, "before")
	fill(t, kube)
	file := m.snapshot(t)
	content, err := etcdsnapshot.Mapped(file, "/registry/")
	if err != nil {
		t.Fatal(err)
	}
	if len(encryption) > 0 {
		encrypted(t, file)
	}
	want := lists(t, kube, content.Revision)
	if number := total(want); len(want) < 80 || number < 500 {
		t.Errorf("there are only %d lists with %d objects", len(want), number)
	}
	for path, objects := range want {
		if group, _ := resourceOf(path); len(objects) == 0 && !strings.HasSuffix(group, "example.com") {
			known.absent(t, path)
		}
	}

	_, opened := run(t, append(slices.Clone(flags), "--open", file)...)
	sameLists(t, "opened", want, opened, content.Revision, known)
	if version != kubernetes.Version {
		// EventedPLEG, a gate of kubelets, needs a gate that the older release lacks.
		_, emulating := run(t, slices.Concat(everything[:1], encryption, []string{
			everything[1] + ",EventedPLEG=false", "--open", file, "--emulated-version=" + release(version),
		})...)
		sameLists(t, "opened with the emulated version", want, emulating, content.Revision, known)
		// The objects are the same ones for a kube-apiserver of this release, over the same etcd.
		upgraded := startProgram(t, current, m.Client, flags...)
		sameLists(t, "opened, and upgraded", lists(t, upgraded, content.Revision), opened, content.Revision, known)
	}
	_, restored := run(t, append(slices.Clone(flags), "--restore", file, "--controllers=")...)
	sameLists(t, "restored", want, restored, content.Revision, known)
	readByCommands(t, file, want, encryption)
}

// encrypted checks that a file has values of each provider of the configuration, and no plain ones.
func encrypted(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, provider := range []string{"aescbc:v1", "aesgcm:v1", "secretbox:v1", "kms:v2:both"} {
		if !bytes.Contains(data, []byte("k8s:enc:"+provider+":")) {
			t.Errorf("no value is encrypted by %s", provider)
		}
	}
	for _, plain := range []string{`"kind":"Thing"`, "v1\x12\tConfigMap"} {
		if bytes.Contains(data, []byte(plain)) {
			t.Errorf("the snapshot has %q", plain)
		}
	}
}

// release returns MAJOR.MINOR of a version.
func release(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// fill creates the objects of the corpus in each version that the server serves.
func fill(t *testing.T, kube process.API) {
	t.Helper()
	objects, err := corpus.Read(corpus.Gated)
	if err != nil {
		t.Fatal(err)
	}
	if err := kube.Do(t.Context(), http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": corpusNamespace}}, nil); err != nil {
		t.Fatal(err)
	}
	served := servedKinds(t, kube)
	rejected := map[string]string{}
	created := 0
	for _, o := range objects {
		apiVersion, _ := o["apiVersion"].(string)
		kind, _ := o["kind"].(string)
		group, _, grouped := strings.Cut(apiVersion, "/")
		if !grouped {
			group = ""
		}
		metadata, _ := o["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		done := ""
		for _, in := range served[group+" "+kind] {
			o["apiVersion"] = in.version
			if done != "" {
				metadata["name"] = name + "-" + in.version[strings.LastIndex(in.version, "/")+1:]
			}
			collection := in.collection(corpusNamespace)
			delete(metadata, "namespace")
			if err := kube.Do(t.Context(), http.MethodPost, collection, o, nil); err != nil {
				rejected[in.version+" "+kind+" "+name] = err.Error()
				continue
			}
			done = in.version
			created++
			if status, ok := o["status"]; ok && in.status {
				path := fmt.Sprintf("%s/%s/status", collection, metadata["name"])
				if err := kube.Do(t.Context(), http.MethodPatch, path, map[string]any{"status": status}, nil); err != nil {
					rejected[in.version+" "+kind+" "+name+" status"] = err.Error()
				}
			}
		}
	}
	for _, object := range slices.Sorted(maps.Keys(rejected)) {
		t.Logf("%s: %.300s", object, rejected[object])
	}
	t.Logf("%d objects of the corpus were created, %d rejected", created, len(rejected))
}

// A servedKind is a kind in one version.
type servedKind struct {
	version, plural    string // apps/v1
	namespaced, status bool
}

// collection returns the path of the objects in a namespace, or of all if the kind is not namespaced.
func (k servedKind) collection(namespace string) string {
	prefix := "/apis/" + k.version
	if !strings.Contains(k.version, "/") {
		prefix = "/api/" + k.version
	}
	if k.namespaced {
		prefix += "/namespaces/" + namespace
	}
	return prefix + "/" + k.plural
}

// servedKinds returns the kinds that can be created, by group and name, in the order of their versions.
func servedKinds(t *testing.T, api process.API) map[string][]servedKind {
	t.Helper()
	out := map[string][]servedKind{}
	for _, version := range servedVersions(t, api) {
		list := resources(t, api, version)
		group, _, grouped := strings.Cut(list.GroupVersion, "/")
		if !grouped {
			group = ""
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "create") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			status := slices.ContainsFunc(list.APIResources, func(s metav1.APIResource) bool { return s.Name == r.Name+"/status" })
			key := group + " " + r.Kind
			out[key] = append(out[key], servedKind{version: list.GroupVersion, plural: r.Name, namespaced: r.Namespaced, status: status})
		}
	}
	return out
}

// An objects value has objects by namespace and name.
type objects = map[string]map[string]any

// lists returns the objects of all lists of a server at a revision, by path.
func lists(t *testing.T, api process.API, revision int64) map[string]objects {
	t.Helper()
	all := map[string]objects{}
	for _, path := range listed(t, api) {
		all[path] = items(t, api, fmt.Sprintf("%s?resourceVersion=%d&resourceVersionMatch=Exact", path, revision))
	}
	return all
}

func total(lists map[string]objects) (n int) {
	for _, l := range lists {
		n += len(l)
	}
	return n
}

// sameLists compares the lists of a server over a file with those of a kube-apiserver. Objects that are newer than the file
// are those that each starting server writes.
func sameLists(t *testing.T, how string, want map[string]objects, opened process.API, revision int64, known *exceptions) {
	t.Helper()
	served := listed(t, opened)
	compared, number, excepted := 0, 0, 0
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if !slices.Contains(served, path) {
			if len(want[path]) > 0 {
				known.unserved(t, how, path)
			}
			continue
		}
		got, expected := items(t, opened, path), maps.Clone(want[path])
		maps.DeleteFunc(got, func(name string, o map[string]any) bool {
			written, err := strconv.ParseInt(revisionOf(o), 10, 64)
			if err == nil && written <= revision {
				return false
			}
			if expected[name] != nil && known.find(rewritten, path, "") {
				delete(expected, name)
			}
			return true
		})
		compared, number = compared+1, number+len(expected)
		for _, name := range slices.Sorted(maps.Keys(expected)) {
			if got[name] == nil {
				t.Errorf("%s: %s has no %s", how, path, name)
				continue
			}
			for _, d := range differences("", expected[name], got[name]) {
				if known.allows(path, d.field) {
					excepted++
				} else {
					t.Errorf("%s: %s %s %s\nkube-apiserver: %.400s\nanykind:        %.400s", how, path, name, d.field, d.theirs, d.ours)
				}
			}
			delete(got, name)
		}
		for name := range got {
			t.Errorf("%s: %s has %s, and the kube-apiserver does not", how, path, name)
		}
	}
	t.Logf("%s: %d lists with %d objects are equal, but for %d excepted fields", how, compared, number, excepted)
}

// A difference is a field with different values.
type difference struct{ field, theirs, ours string }

// differences returns the differences of two values. An element of a list has the field of the list, with [].
func differences(field string, theirs, ours any) (out []difference) {
	if reflect.DeepEqual(theirs, ours) {
		return nil
	}
	a, inMaps := theirs.(map[string]any)
	b, both := ours.(map[string]any)
	if inMaps && both {
		keys := maps.Clone(a)
		maps.Copy(keys, b)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			out = append(out, differences(strings.TrimPrefix(field+"."+key, "."), a[key], b[key])...)
		}
		return out
	}
	c, inLists := theirs.([]any)
	d, both := ours.([]any)
	if inLists && both && len(c) == len(d) {
		for i := range c {
			out = append(out, differences(field+"[]", c[i], d[i])...)
		}
		return out
	}
	x, _ := json.Marshal(theirs)
	y, _ := json.Marshal(ours)
	return []difference{{field, string(x), string(y)}}
}

// resourceOf returns the group of a path, "" for the core group, and its resource.
func resourceOf(path string) (group, resource string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "apis" {
		group = parts[1]
	}
	return group, parts[len(parts)-1]
}

// readByCommands reads a snapshot with the commands that need no server, and with kubectl.
func readByCommands(t *testing.T, file string, want map[string]objects, encryption []string) {
	t.Helper()
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := program.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	const things = "/apis/before.example.com/v1/things"
	deployments := want["/apis/apps/v1/deployments"]
	if len(deployments) == 0 || len(want[things]) == 0 {
		t.Fatal("there are no Deployments or no custom objects")
	}
	// With the flags of a user, not with all versions of all kinds.
	server, _ := run(t, append(slices.Clone(encryption), "--open", file)...)
	for resource, objects := range map[string]objects{"deployments": deployments, "things": want[things]} {
		var list struct{ Items []map[string]any }
		out := said(t, kubectl, "--kubeconfig", server.Kubeconfig, "get", resource, "--all-namespaces", "-o", "json")
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != len(objects) {
			t.Errorf("kubectl has %d %s, want %d", len(list.Items), resource, len(objects))
		}
		table := said(t, kubectl, "--kubeconfig", server.Kubeconfig, "get", resource, "--all-namespaces")
		names := said(t, anykind, append([]string{"get", resource, "--from", file, "-o", "name"}, encryption...)...)
		for name := range objects {
			namespace, name, _ := strings.Cut(name, "/")
			if !slices.ContainsFunc(strings.Split(table, "\n"), func(line string) bool {
				fields := strings.Fields(line)
				return len(fields) > 2 && fields[0] == namespace && fields[1] == name
			}) {
				t.Errorf("kubectl get %s has no %s in %s:\n%s", resource, name, namespace, table)
			}
			if !strings.Contains(names, "/"+name+" in "+namespace+"\n") {
				t.Errorf("anykind get %s has no %s in %s:\n%s", resource, name, namespace, names)
			}
		}
	}
	// Objects that were deleted since, and a dry run that creates none.
	empty, api := run(t)
	namespaces := map[string]bool{}
	for name := range deployments {
		namespace, _, _ := strings.Cut(name, "/")
		if !namespaces[namespace] {
			namespaces[namespace] = true
			if err := api.Do(t.Context(), http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": namespace}}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	args := append([]string{"restore", file, "deployments", "--dry-run", "--kubeconfig", empty.Kubeconfig}, encryption...)
	if got := strings.Count(said(t, anykind, args...), " created (dry run)\n"); got != len(deployments) {
		t.Errorf("anykind restore --dry-run creates %d deployments, want %d", got, len(deployments))
	}
	if out := said(t, kubectl, "--kubeconfig", empty.Kubeconfig, "get", "deployments", "--all-namespaces", "-o", "name"); out != "" {
		t.Errorf("the dry run has created %s", out)
	}
}

// said runs a program, and returns its output.
func said(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v: %s%s", strings.Join(args, " "), err, out, failure.String())
	}
	return string(out)
}

// An exception is a difference with a reason.
type exception struct {
	release  string // of the kube-apiserver that filled the etcd; "" for all
	kind     string // of the exception
	resource string // resource.group, and /version unless all are meant
	field    string // with all fields below it, for differs
	reason   string
}

// Kinds of exceptions.
const (
	differs   = "a field differs"
	unserved  = "the list is not served"
	absent    = "the list is empty"
	rewritten = "the starting server writes some of the objects"
)

const (
	gone      = "the release of this server no longer serves the version; another version has the objects"
	alpha     = "the version needs fields that the corpus lacks; no server of this release, also no kube-apiserver, can read it"
	ofRelease = "the release of this server has more rules in its default roles"
)

var knownExceptions = []exception{
	{"1.34", unserved, "clustertrustbundles.certificates.k8s.io/v1alpha1", "", gone},
	{"1.34", unserved, "ipaddresses.networking.k8s.io/v1beta1", "", gone},
	{"1.34", unserved, "servicecidrs.networking.k8s.io/v1beta1", "", gone},
	{"1.34", unserved, "volumeattributesclasses.storage.k8s.io/v1alpha1", "", gone},
	{"1.34", unserved, "volumeattributesclasses.storage.k8s.io/v1beta1", "", gone},
	{"1.34", absent, "podcertificaterequests.certificates.k8s.io/v1alpha1", "", alpha},
	{"1.34", absent, "storageversionmigrations.storagemigration.k8s.io/v1alpha1", "", alpha},
	{"1.34", rewritten, "clusterroles.rbac.authorization.k8s.io", "", ofRelease},
	{"1.34", differs, "csinodes.storage.k8s.io", "status", "v1.37 has the field, and writes it always"},
	{"1.34", differs, "csidrivers.storage.k8s.io", "spec.preventPodSchedulingIfMissing", "v1.37 has the field and its default"},
	{"1.34", differs, "devicetaintrules.resource.k8s.io/v1alpha3", "status", "v1.37 has the field, and writes it always"},
}

// exceptions are those for the snapshots of one version.
type exceptions struct {
	all  []exception
	used map[int]bool
}

func newExceptions(version string) *exceptions {
	e := &exceptions{used: map[int]bool{}}
	for _, x := range knownExceptions {
		if cmp.Or(x.release, release(version)) == release(version) {
			e.all = append(e.all, x)
		}
	}
	return e
}

// find reports whether there is an exception, and uses it.
func (e *exceptions) find(kind, path, field string) bool {
	found := false
	for i, x := range e.all {
		group, resource := resourceOf(path)
		name := strings.TrimSuffix(resource+"."+group, ".")
		version := path[:strings.LastIndex(path, "/")]
		version = version[strings.LastIndex(version, "/")+1:]
		if x.kind != kind || x.resource != name && x.resource != name+"/"+version {
			continue
		}
		if field == x.field || x.field != "" && (strings.HasPrefix(field, x.field+".") || strings.HasPrefix(field, x.field+"[]")) {
			found, e.used[i] = true, true
		}
	}
	return found
}

func (e *exceptions) allows(path, field string) bool { return e.find(differs, path, field) }

func (e *exceptions) unserved(t *testing.T, how, path string) {
	t.Helper()
	if !e.find(unserved, path, "") {
		t.Errorf("%s: %s is not served", how, path)
	}
}

func (e *exceptions) absent(t *testing.T, path string) {
	t.Helper()
	if !e.find(absent, path, "") {
		t.Errorf("%s has no objects", path)
	}
}

// stale reports the exceptions without a difference.
func (e *exceptions) stale(t *testing.T) {
	t.Helper()
	for i, x := range e.all {
		if !e.used[i] {
			t.Errorf("remove the exception: %s %s %s (%s)", x.kind, x.resource, x.field, x.reason)
		}
	}
}
