package recording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A Server handles a request for a path with one value of Accept. The body is JSON, or "".
type Server func(method, path, accept, body string) (code int, answer []byte, err error)

const (
	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	table      = "application/json;as=Table;v=v1;g=meta.k8s.io"
	plain      = "application/json"
)

// get decodes the response of a server.
func (s Server) get(path, accept string, into any) error {
	code, body, err := s(http.MethodGet, path, accept, "")
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("GET %s: %d %s", path, code, body)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// Gates are the feature gates of the recording of kinds that need gates, and GatedVersions their versions.
const (
	Gates = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true,PodGroupPreemptionPolicy=true," +
		"DRAWorkloadResourceClaims=true,WorkloadWithJob=true,EvictionRequestAPI=true"
	GatedVersions = "scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true,lifecycle.k8s.io/v1alpha1=true"
)

// The Files of a recording, by name.
type Files map[string]Recording

// Beyond returns the content of f that others lack or have differently.
func (f Files) Beyond(others Files) Files {
	out := Files{}
	for name, r := range f {
		known := map[string]*Block{}
		for _, b := range others[name] {
			known[b.Subject] = b
		}
		for _, b := range r {
			if k := known[b.Subject]; k == nil || !slices.Equal(k.lines(), b.lines()) {
				out[name] = append(out[name], b)
			}
		}
	}
	return out
}

// Record records the whole API surface of a server, except groups for which skip is true.
func Record(s Server, skip func(group string) bool) (Files, error) {
	groups, err := s.groups(skip)
	if err != nil {
		return nil, err
	}
	kinds, err := s.kinds(groups)
	if err != nil {
		return nil, err
	}
	d, err := s.documents(groups)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		if err := s.selectors(k, d); err != nil {
			return nil, err
		}
		if err := s.putting(k); err != nil {
			return nil, err
		}
	}
	operations, err := d.operations(kinds)
	if err != nil {
		return nil, err
	}
	f := Files{"types.txt": d.types()}
	for _, g := range groups {
		f["groups.txt"] = append(f["groups.txt"], &Block{Subject: "group " + cmp.Or(g.name, "core"), Facts: []string{strings.Join(g.versions, " ")}})
	}
	for _, k := range kinds {
		if k.called != "" {
			k.blocks[0].Facts = append(k.blocks[0].Facts, "called "+k.called)
		}
		for _, b := range k.blocks {
			b.Operations = operations[b.Subject]
			delete(operations, b.Subject)
			f["kinds.txt"] = append(f["kinds.txt"], b)
		}
	}
	f["groups.txt"] = append(f["groups.txt"], d.rest(operations)...)
	return f, nil
}

// A group is an API group, "" for the core, with its versions, the preferred one first.
type group struct {
	name     string
	versions []string
}

// root returns the path of a version of the group.
func (g group) root(version string) string {
	if g.name == "" {
		return "/api/" + version
	}
	return "/apis/" + g.name + "/" + version
}

// groupVersion returns the apiVersion of a version of the group.
func (g group) groupVersion(version string) string {
	if g.name == "" {
		return version
	}
	return g.name + "/" + version
}

func (s Server) groups(skip func(string) bool) ([]group, error) {
	var core struct{ Versions []string }
	if err := s.get("/api", plain, &core); err != nil {
		return nil, err
	}
	var list struct {
		Groups []struct {
			Name             string
			Versions         []struct{ Version string }
			PreferredVersion struct{ Version string }
		}
	}
	if err := s.get("/apis", plain, &list); err != nil {
		return nil, err
	}
	groups := []group{{"", core.Versions}}
	for _, g := range list.Groups {
		if skip(g.Name) {
			continue
		}
		one := group{name: g.Name}
		for _, v := range g.Versions {
			one.versions = append(one.versions, v.Version)
		}
		if one.versions[0] != g.PreferredVersion.Version {
			one.versions = append(one.versions, "prefers "+g.PreferredVersion.Version)
		}
		groups = append(groups, one)
	}
	return groups, nil
}

// A kind is a resource in one version, with its subresources.
type kind struct {
	group    group
	version  string
	plural   string
	name     string // as in Pod
	called   string // as in a Pod
	listable bool
	writable bool     // by PUT
	scoped   bool     // namespaced
	blocks   []*Block // of the resource and its subresources
}

func (k *kind) root() string    { return k.group.root(k.version) }
func (k *kind) subject() string { return k.group.groupVersion(k.version) + " " + k.plural }

// kinds requests the resources of groups, in their order.
func (s Server) kinds(groups []group) ([]*kind, error) {
	more, err := s.aggregated()
	if err != nil {
		return nil, err
	}
	var out []*kind
	for _, g := range groups {
		for _, v := range g.versions {
			var list struct{ Resources []apiResource }
			if err := s.get(g.root(v), plain, &list); err != nil {
				return nil, err
			}
			for _, r := range list.Resources {
				plural, sub, _ := strings.Cut(r.Name, "/")
				if sub == "" {
					out = append(out, &kind{group: g, version: v, plural: plural, name: r.Kind, listable: slices.Contains(r.Verbs, "list"), writable: slices.Contains(r.Verbs, "update"), scoped: r.Namespaced})
				}
				k := out[len(out)-1]
				b := &Block{Subject: k.group.groupVersion(v) + " " + r.Name, Facts: r.facts()}
				if other, legacy := more[b.Subject], r.comparable(); other != legacy {
					b.Facts = append(b.Facts, "aggregated "+other)
				}
				k.blocks = append(k.blocks, b)
			}
			for _, k := range out {
				if k.group.name == g.name && k.version == v && k.listable {
					if err := s.columns(k); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return out, nil
}

// columns requests the columns of a Table, each with a hash of its description.
func (s Server) columns(k *kind) error {
	var t struct {
		ColumnDefinitions []struct {
			Name, Type, Format, Description string
			Priority                        int
		}
	}
	if err := s.get(k.root()+"/"+k.plural+"?limit=1", table, &t); err != nil {
		return err
	}
	b := k.blocks[0]
	for _, c := range t.ColumnDefinitions {
		line := fmt.Sprintf("column %q %s", c.Name, c.Type)
		if c.Format != "" {
			line += " format=" + c.Format
		}
		if c.Priority != 0 {
			line += fmt.Sprintf(" priority=%d", c.Priority)
		}
		b.Facts = append(b.Facts, line+" "+mark(c.Description, 6))
	}
	return nil
}

// selectors tries field selectors for lists: fields near the root of an object, and some special
// ones.
func (s Server) selectors(k *kind, d *documents) error {
	if !k.listable {
		return nil
	}
	labels := append(d.labels(k), "name", "source", "status.successful", "spec.host", "status.podIP", "status.podIPs")
	slices.Sort(labels)
	var found []string
	for _, label := range slices.Compact(labels) {
		code, body, err := s(http.MethodGet, k.root()+"/"+k.plural+"?limit=1&fieldSelector="+label+"%3Dx", plain, "")
		switch {
		case err != nil:
			return err
		case code == http.StatusOK, strings.Contains(string(body), "invalid syntax"):
			found = append(found, label) // an error about a boolean value also proves the field
		case code != http.StatusBadRequest:
			return fmt.Errorf("%s by %s: %d %s", k.subject(), label, code, body)
		}
	}
	b := k.blocks[0]
	b.Facts = append(b.Facts, "fields "+strings.Join(found, " "))
	return nil
}

// putting tries whether a PUT creates a missing object, as a dry run.
func (s Server) putting(k *kind) error {
	if !k.writable {
		return nil
	}
	path := k.root()
	if k.scoped {
		path += "/namespaces/default"
	}
	body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"missing"}}`, k.group.groupVersion(k.version), k.name)
	code, _, err := s(http.MethodPut, path+"/"+k.plural+"/missing?dryRun=All", plain, body)
	if err == nil && code != http.StatusNotFound {
		b := k.blocks[0]
		b.Facts = append(b.Facts, "put creates")
	}
	return err
}
