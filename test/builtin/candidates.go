package builtin

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	long       = strings.Repeat("a", 300)
	longLabel  = strings.Repeat("a", 64)
	longDomain = strings.TrimSuffix(strings.Repeat("a.", 127), ".")
)

// mapKeys are keys to add to maps.
var mapKeys = []string{"added", "example.com/added", "Bad Key!", "", longLabel, "example.com/" + longLabel, "kubernetes.io/x", ".", ".."}

// anyString are values for every string.
var anyString = []any{"", "x", "Bad_Name!", long, longLabel, "example.com/a", "a.b", "-a", " a"}

// likely are values for fields whose name contains a word.
var likely = []struct {
	words  string
	values []any
}{
	{"name class key ref domain topic queue user group subject driver provisioner", []any{"kube-system", "system:x", "A", "a/b", "..", longDomain, "example.com", "Example.com", "a_b", "1a", "kubernetes.io/x", "x.k8s.io/y"}},
	{"ip address cidr host range", []any{"10.0.0.1", "010.0.0.1", "fd00::1", "::ffff:10.0.0.1", "10.0.0.0/8", "10.0.0.1/8", "010.0.0.0/8", "fd00::/64", "300.1.1.1", "fe80::1", "127.0.0.1", "::1", "224.0.0.1", "0.0.0.0", "169.254.0.1", "None", "FD00::1"}},
	{"path dir file", []any{"/a", "a", "../a", "/a/../b", "/a:b", `C:\a`, "a/..", "/", "//a", "..data", "..a"}},
	{"url host uri server endpoint", []any{"https://example.com", "http://example.com/p", "https://u:p@example.com/p?q#f", "://", "*.example.com", "a.example.com", "*", "*.*.com", "https://"}},
	{"expression", []any{"true", "1", "x.", "object.x == 1", "'a'", "device.driver == 'a'"}},
	{"schedule", []any{"* * * * *", "TZ=UTC * * * * *", "@every 1h", "@hourly", "61 * * * *", "* * * *"}},
	{"zone", []any{"Etc/UTC", "Local", "local", "Europe/Paris", "nowhere/at", "../x"}},
	{"operator", []any{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "OnNewVersion"}},
	{"version", []any{"v1", "1", "V1", "example.com/v1", "v1beta1"}},
	{"effect", []any{"NoSchedule", "NoExecute", "PreferNoSchedule"}},
	{"protocol", []any{"TCP", "UDP", "SCTP", "tcp"}},
	{"policy mode type scope status phase strategy", []any{"Always", "Never", "None", "True", "False", "Unknown", "Cluster", "Namespaced", "Local", "OnDelete", "RollingUpdate", "Recreate", "*"}},
	{"verb resource groups", []any{"*", "get", "pods", "pods/status", "*/*", "pods/*", "*/scale", "CREATE", "apps"}},
	{"port", []any{"http", "80", "HTTP", "a-very-long-port-name"}},
	{"finalizer", []any{"kubernetes", "orphan", "foregroundDeletion"}},
	{"hash", []any{"abc"}},
}

func stringsFor(f structField) []any {
	out := make([]any, 0, 32)
	for _, e := range f.enum {
		out = append(out, e)
	}
	if len(f.enum) > 0 {
		out = append(out, strings.ToLower(f.enum[0]))
	}
	out = append(out, anyString...)
	name := strings.ToLower(f.name)
	for _, l := range likely {
		for word := range strings.FieldsSeq(l.words) {
			if strings.Contains(name, word) {
				out = append(out, l.values...)
				break
			}
		}
	}
	return append(out, float64(7))
}

var (
	quantities = []any{"1", "0", "-1", "1500m", "1Gi", "0.5", "1m", "x", "", float64(1), true}
	times      = []any{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000006Z", "1969-01-01T00:00:00Z", "x", "", float64(1)}
	intOrs     = []any{float64(0), float64(1), float64(-1), float64(80), float64(65536), "10%", "101%", "0%", "-1%", "http", "Bad_Port!", "", "50", true}
	durations  = []any{"1s", "0s", "-1s", "x", float64(1)}
	integers   = []any{float64(0), float64(1), float64(-1), float64(2), float64(10), float64(100), float64(101), float64(600), float64(3600), float64(65535), float64(65536), float64(2147483647), float64(2147483648), 1.5, "1"}
)

// scalars returns values for a type without fields, the most likely one first.
func scalars(f structField) ([]any, bool) {
	t := deref(f.of)
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return quantities, true
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return times, true
	case reflect.TypeFor[intstr.IntOrString]():
		return intOrs, true
	case reflect.TypeFor[metav1.Duration]():
		return durations, true
	}
	if isSpecial(t) {
		return []any{Object{}, Object{"a": "b"}, "x", float64(1), nil}, true
	}
	switch t.Kind() {
	case reflect.String:
		return stringsFor(f), true
	case reflect.Bool:
		return []any{true, false, "x"}, true
	case reflect.Int32, reflect.Int64, reflect.Int, reflect.Uint32, reflect.Uint64, reflect.Int16, reflect.Uint8, reflect.Uint16, reflect.Float64, reflect.Float32:
		return integers, true
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return []any{"YQ==", "", "a", "!", nil}, true
		}
	case reflect.Interface:
		return []any{"x", float64(1)}, true
	}
	return nil, false
}

// candidates returns values for an absent field.
func candidates(f structField, depth int) []any {
	if s, ok := scalars(f); ok {
		return s
	}
	t := deref(f.of)
	switch t.Kind() {
	case reflect.Struct:
		return structs(t, depth)
	case reflect.Slice:
		return lists(structField{name: f.name, of: t.Elem(), enum: f.enum}, depth)
	case reflect.Map:
		element := candidates(structField{name: f.name, of: t.Elem()}, depth-1)
		out := []any{Object{}}
		for _, k := range mapKeys {
			out = append(out, Object{k: element[0]})
		}
		for _, v := range element {
			out = append(out, Object{"added": v})
		}
		return append(out, "x")
	}
	return nil
}

func lists(element structField, depth int) []any {
	out := []any{[]any{}}
	all := candidates(element, depth)
	for _, v := range all {
		out = append(out, []any{v})
	}
	first := plausible(element, depth)
	return append(out, []any{first, first}, []any{nil}, many(first, 9), many(first, 33), many(first, 65), many(first, 129), "x")
}

// structs returns values of a struct: its required fields, these with each other field, and empty.
func structs(t reflect.Type, depth int) []any {
	least, _ := plausible(structField{of: t}, depth).(Object)
	out := []any{least, Object{}}
	if depth <= 0 {
		return append(out, "x")
	}
	for _, f := range fieldsOf(t) {
		if f.name == "managedFields" {
			continue
		}
		for _, c := range candidates(f, depth-1) {
			out = append(out, set(least, []any{f.name}, c))
		}
	}
	return append(out, "x")
}

// plausible returns a value that is likely to be valid.
func plausible(f structField, depth int) any {
	if s, ok := scalars(f); ok {
		if deref(f.of).Kind() == reflect.String && len(f.enum) == 0 {
			return "x"
		}
		return s[0]
	}
	t := deref(f.of)
	switch t.Kind() {
	case reflect.Struct:
		o := Object{}
		for _, f := range fieldsOf(t) {
			if f.required && depth > -3 {
				o[f.name] = plausible(f, depth-1)
			}
		}
		return o
	case reflect.Slice:
		if depth <= -3 {
			return []any{}
		}
		return []any{plausible(structField{name: f.name, of: t.Elem(), enum: f.enum}, depth-1)}
	case reflect.Map:
		return Object{}
	}
	return nil
}

// annotations have a meaning for some kind.
var annotations = []string{
	"scheduler.alpha.kubernetes.io/critical-pod", "seccomp.security.alpha.kubernetes.io/pod",
	"container.apparmor.security.beta.kubernetes.io/c", "container.seccomp.security.alpha.kubernetes.io/c",
	"volume.beta.kubernetes.io/storage-class", "volume.beta.kubernetes.io/mount-options",
	"volume.beta.kubernetes.io/storage-provisioner", "volume.alpha.kubernetes.io/storage-class",
	"storageclass.kubernetes.io/is-default-class", "ingressclass.kubernetes.io/is-default-class",
	"kubernetes.io/ingress.class", "control-plane.alpha.kubernetes.io/leader",
	"service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints",
	"service.beta.kubernetes.io/load-balancer-source-ranges", "service.kubernetes.io/headless",
	"endpoints.kubernetes.io/last-change-trigger-time", "endpoints.kubernetes.io/over-capacity",
	"batch.kubernetes.io/job-tracking", "batch.kubernetes.io/cronjob-scheduled-timestamp",
	"controller.kubernetes.io/pod-deletion-cost", "pod-security.kubernetes.io/enforce",
	"kubernetes.io/service-account.name", "kubernetes.io/enforce-mountable-secrets",
	"autoscaling.alpha.kubernetes.io/metrics", "autoscaling.alpha.kubernetes.io/behavior",
	"autoscaling.alpha.kubernetes.io/current-metrics", "autoscaling.alpha.kubernetes.io/conditions",
	"deprecated.daemonset.template.generation", "deployment.kubernetes.io/revision",
	"scheduler.alpha.kubernetes.io/preferAvoidPods", "kubernetes.io/config.mirror",
	"rbac.authorization.kubernetes.io/autoupdate", "resource.kubernetes.io/pod-claim-name",
	"api-approved.kubernetes.io", "apf.kubernetes.io/autoupdate-spec", "node.alpha.kubernetes.io/ttl",
}

// metadata mutates metadata with rules of the kind. Other tests compare the rules that all kinds
// share.
func (w *walker) metadata(o Object) {
	for _, n := range []any{"x", "Bad_Name!", "", "a.b", longLabel, longDomain, long, "-a", "a/b", "a:b", "system:a", "A", "1.2.3.4", "010.0.0.1", "fd00::1", "default", "kubernetes", "v1.example.com", "a.example.com", "system", "exempt", "a%b", "..", "system-a", strings.Repeat("a", 53), "1a"} {
		w.add([]any{"metadata", "name"}, n)
	}
	w.add([]any{"metadata", "name"}, removed{})
	w.add([]any{"metadata", "namespace"}, "other")
	w.add([]any{"metadata", "generateName"}, "Bad_")
	for _, l := range []Object{{"a": "b"}, {"Bad Key!": "x"}, {"a": "Bad Value!"}, {"kubernetes.io/metadata.name": "x"}, {"app": "other"}, {"kubernetes.io/service-name": "x"}, {"k8s-app": longLabel}} {
		w.add([]any{"metadata", "labels"}, l)
	}
	w.add([]any{"metadata", "labels"}, removed{})
	w.add([]any{"metadata", "annotations"}, Object{"Bad Key!": "x"})
	w.add([]any{"metadata", "annotations"}, Object{"a": strings.Repeat("a", 256<<10)})
	w.add([]any{"metadata", "finalizers"}, []any{"x"})
	w.add([]any{"metadata", "finalizers"}, []any{"example.com/x"})
	w.add([]any{"metadata", "ownerReferences"}, []any{Object{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": ""}})
	for _, a := range annotations {
		for _, v := range []string{"true", "false", "x", "", "unconfined", "runtime/default", "localhost/x", "10", "10.0.0.0/8", "Auto", `[]`, `{}`, "2026-01-02T03:04:05Z", "unapproved", "https://github.com/x"} {
			w.add([]any{"metadata", "annotations"}, Object{a: v})
		}
	}
}
