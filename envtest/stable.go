package envtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// stable formats changes without values that differ between runs.
type stable struct {
	generated []string // generated names; the index makes the placeholder
	count     int
}

var variable = []struct {
	pattern *regexp.Regexp
	stands  string
}{
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<uid>"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "<time>"},
	{regexp.MustCompile(`\b(localhost|127\.0\.0\.1|\[::1\]):\d+\b`), "$1:<port>"},
}

// text replaces values that differ between runs.
func (s *stable) text(line string) string {
	for _, v := range variable {
		line = v.pattern.ReplaceAllString(line, v.stands)
	}
	return strings.NewReplacer(s.generated...).Replace(line)
}

// describe formats a change. It omits the name of the object if the path ends with it.
func (s *stable) describe(c change, at string) string {
	name := path.Base(c.key) + " "
	before, _ := plain(c.before)
	after, ok := plain(c.after)
	at, _, _ = strings.Cut(at, "?")
	switch {
	case c.after == nil:
		return name + "deleted"
	case !ok:
		return name + "changed"
	case c.before == nil:
		s.note(after)
		shown := bare(after)
		if meta, _ := shown["metadata"].(map[string]any); len(meta) == 0 {
			delete(shown, "metadata")
		}
		return name + compact(shown)
	case strings.Contains(at+"/", "/"+path.Base(c.key)+"/"):
		name = ""
	}
	var fields []string
	differences(bare(before), bare(after), "", &fields)
	return name + strings.Join(fields, " ")
}

// note records a generated name.
func (s *stable) note(object map[string]any) {
	meta, _ := object["metadata"].(map[string]any)
	begin, _ := meta["generateName"].(string)
	name, _ := meta["name"].(string)
	if begin != "" && strings.HasPrefix(name, begin) && name != begin {
		s.count++
		s.generated = append(s.generated, name, fmt.Sprintf("%s<%d>", begin, s.count))
	}
}

func plain(data []byte) (object map[string]any, ok bool) {
	return object, data != nil && json.Unmarshal(data, &object) == nil
}

// bare removes the fields that the path implies, and those that differ between runs.
func bare(object map[string]any) map[string]any {
	object = maps.Clone(object)
	delete(object, "apiVersion")
	delete(object, "kind")
	meta, _ := object["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	for _, name := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "generateName"} {
		delete(meta, name)
	}
	object["metadata"] = meta
	spec, _ := object["spec"].(map[string]any)
	if _, is := spec["clusterIP"]; is {
		spec = maps.Clone(spec)
		for name, stands := range map[string]any{"clusterIP": "<ip>", "clusterIPs": []any{"<ip>"}, "healthCheckNodePort": "<port>"} {
			if _, is := spec[name]; is && spec["clusterIP"] != "None" {
				spec[name] = stands
			}
		}
		if ports, ok := spec["ports"].([]any); ok {
			spec["ports"] = withoutNodePorts(ports)
		}
		object["spec"] = spec
	}
	return object
}

func withoutNodePorts(ports []any) []any {
	ports = slices.Clone(ports)
	for i, p := range ports {
		if port, ok := p.(map[string]any); ok && port["nodePort"] != nil {
			port = maps.Clone(port)
			port["nodePort"] = "<port>"
			ports[i] = port
		}
	}
	return ports
}

func compact(value any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}

// differences adds the fields in which two values differ, with their new values, or their removal.
func differences(before, after any, at string, fields *[]string) {
	old, isOld := before.(map[string]any)
	now, isNow := after.(map[string]any)
	if !isOld || !isNow {
		if !reflect.DeepEqual(before, after) {
			*fields = append(*fields, at+"="+compact(after))
		}
		return
	}
	names := maps.Clone(old)
	maps.Copy(names, now)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		below := strings.TrimPrefix(at+"."+name, ".")
		if strings.ContainsAny(name, ".= ") {
			below = at + "[" + name + "]"
		}
		switch _, had := old[name]; {
		case now[name] == nil:
			*fields = append(*fields, "-"+below)
		case !had:
			*fields = append(*fields, below+"="+compact(now[name]))
		default:
			differences(old[name], now[name], below, fields)
		}
	}
}
