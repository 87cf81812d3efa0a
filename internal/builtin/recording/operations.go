package recording

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// operations returns the OpenAPI operations by subject: a resource, a subresource, or otherwise the
// path. Operations of v2 are omitted if they equal those of v3.
func (d *documents) operations(kinds []*kind) (map[string][]string, error) {
	out := map[string][]string{}
	subjects := subjects{}
	for _, k := range kinds {
		subjects[k.root()+"/"+k.plural] = k
	}
	v2 := map[string][]string{}
	for name, doc := range d.v3 {
		for path, item := range in(doc, "paths") {
			subject, n := subjects.of(path, d)
			said, err := n.item(doc, path, item.(object))
			if err != nil {
				return nil, fmt.Errorf("%s in %s: %w", path, name, err)
			}
			out[subject] = append(out[subject], said...)
		}
	}
	for path, item := range in(d.v2, "paths") {
		subject, n := subjects.of(path, d)
		said, err := n.item(d.v2, path, item.(object))
		if err != nil {
			return nil, fmt.Errorf("%s in v2: %w", path, err)
		}
		v2[subject] = append(v2[subject], said...)
	}
	for subject := range v2 {
		if out[subject] == nil {
			out[subject] = nil
		}
	}
	for subject, v3 := range out {
		slices.Sort(v3)
		slices.Sort(v2[subject])
		var lines []string
		for _, line := range without(v2[subject], v3) {
			lines = append(lines, "v2 has "+line)
		}
		for _, line := range without(v3, v2[subject]) {
			lines = append(lines, "v2 has not "+line)
		}
		out[subject] = slices.Concat(v3, lines)
	}
	return out, nil
}

// rest returns the remaining operations, and properties of whole documents.
func (d *documents) rest(operations map[string][]string) Recording {
	var out Recording
	for _, name := range d.names {
		b := &Block{Subject: "document " + name}
		if doc := d.v3[name]; doc != nil {
			about := maps.Clone(doc)
			delete(about, "paths")
			about["components"] = maps.Clone(in(doc, "components"))
			delete(in(about, "components"), "schemas")
			b.Operations = []string{encode(about)}
		}
		out = append(out, b)
	}
	about := maps.Clone(d.v2)
	for _, name := range []string{"paths", "definitions", "parameters"} {
		delete(about, name)
	}
	out = append(out, &Block{Subject: "document v2", Operations: []string{encode(about)}})
	for _, path := range slices.Sorted(maps.Keys(operations)) {
		out = append(out, &Block{Subject: path, Operations: operations[path]})
	}
	for _, set := range slices.Sorted(maps.Keys(d.sets)) {
		out = append(out, &Block{Subject: set + ": " + d.sets[set]})
	}
	for _, name := range slices.Sorted(maps.Keys(in(d.v2, "parameters"))) {
		out = append(out, &Block{Subject: "parameter " + name})
	}
	return out
}

// subjects are the kinds by path.
type subjects map[string]*kind

// of returns the subject of a path, and its names.
func (s subjects) of(path string, d *documents) (string, *names) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	at := 2
	if parts[0] == "apis" {
		at = 3
	}
	if len(parts) <= at {
		n := &names{root: path, sets: d.sets}
		if parts[0] == "apis" && len(parts) > 1 {
			n.call(parts[1], strings.Join(parts[2:], ""))
		}
		return path, n
	}
	root, rest := "/"+strings.Join(parts[:at], "/"), parts[at:]
	if rest[0] == "watch" {
		rest = rest[1:]
	}
	if len(rest) > 2 && rest[0] == "namespaces" && rest[1] == "{namespace}" {
		rest = rest[2:]
	}
	k := s[root+"/"+rest[0]]
	if k == nil {
		return path, &names{root: path, sets: d.sets}
	}
	subject := k.subject()
	if len(rest) > 2 {
		subject += "/" + rest[2]
	}
	n := &names{root: root, kind: k, model: d.model(k), sets: d.sets}
	n.call(cmp.Or(k.group.name, "core"), k.version)
	return subject, n
}

// names are the names that placeholders replace in operations.
type names struct {
	root  string
	kind  *kind
	model string
	tag   string // of the operations
	part  string // of their ids
	sets  map[string]string
}

// call sets the names of a group and version in operations.
func (n *names) call(group, version string) {
	words := strings.Split(strings.TrimSuffix(group, ".k8s.io"), ".")
	n.tag = words[0]
	for _, w := range words {
		n.part += capitalized(w)
	}
	for _, w := range words[1:] {
		n.tag += capitalized(w)
	}
	if version != "" {
		n.part += capitalized(version)
		n.tag += "_" + version
	}
	n.tag = "[" + n.tag + "]"
}

func capitalized(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// text replaces the kind in a text, with its article.
func (n *names) text(s string) string {
	if n.kind == nil {
		return s
	}
	s = strings.ReplaceAll(s, n.kind.name, "KIND")
	s = strings.ReplaceAll(s, " an KIND", " KIND")
	return strings.ReplaceAll(s, " a KIND", " KIND")
}

// id replaces group, version and kind in the id of an operation.
func (n *names) id(s string) string {
	if n.part == "" {
		return s
	}
	return n.text(strings.Replace(s, n.part, "~", 1))
}

// schema returns the name of a schema.
func (n *names) schema(s object) string {
	ref := reference(s)
	switch {
	case ref == "":
		return encode(s)
	case n.kind != nil && ref == n.model:
		return "KIND"
	case n.kind != nil && ref == n.model+"List":
		return "KINDList"
	}
	return short(ref)
}

// item returns the lines of one path.
func (n *names) item(doc object, path string, item object) (out []string, err error) {
	at := strings.TrimPrefix(path, n.root)
	if n.kind != nil {
		at = strings.Replace(at, "/"+n.kind.plural, "/PLURAL", 1)
	}
	for _, method := range slices.Sorted(maps.Keys(item)) {
		line := at + " " + method + ":"
		if method == "parameters" {
			line = at + n.parameters(doc, item, new(string))
		} else if line, err = n.operation(doc, line, item[method].(object)); err != nil {
			return nil, err
		}
		out = append(out, line)
	}
	return out, nil
}

// operation returns the line of one operation. v3 and v2 have equal lines for equal operations.
func (n *names) operation(doc object, line string, o object) (string, error) {
	if description := fmt.Sprint(o["description"]); n.kind != nil && strings.HasPrefix(description, "create ") && len(strings.Fields(description)) < 4 {
		n.kind.called = strings.TrimPrefix(description, "create ")
	}
	line += " " + n.id(fmt.Sprint(o["operationId"])) + fmt.Sprintf(" %q", n.text(fmt.Sprint(o["description"])))
	if action, ok := o["x-kubernetes-action"]; ok {
		line += fmt.Sprintf(" %v", action)
	}
	if of := in(o, "x-kubernetes-group-version-kind"); of != nil {
		if name := fmt.Sprintf("%v/%v %v", of["group"], of["version"], of["kind"]); n.kind == nil || name != n.kind.group.name+"/"+n.kind.version+" "+n.kind.name {
			line += " of " + name
		}
	}
	if fmt.Sprint(o["tags"]) != n.tag {
		line += fmt.Sprintf(" tags %v", o["tags"])
	}
	for _, name := range []string{"schemes", "deprecated"} {
		if value, ok := o[name]; ok && fmt.Sprint(value) != "[https]" {
			line += fmt.Sprintf(" %s %v", name, value)
		}
	}
	body := ""
	line += n.parameters(doc, o, &body)
	if b := in(o, "requestBody"); b != nil {
		sent, err := n.content(b)
		if err != nil {
			return "", err
		}
		body = sent
		if b["required"] != true {
			body += " optional"
		}
	} else if consumes := mediaTypes(o["consumes"]); body != "" {
		body = strings.Replace(body, " ", " "+consumes+" ", 1)
	} else if consumes != "" && consumes != "*/*" {
		body = "consumes " + consumes
	}
	if body != "" {
		line += "; takes " + strings.TrimSpace(body)
	}
	responses, last := in(o, "responses"), ""
	for _, code := range slices.Sorted(maps.Keys(responses)) {
		r := responses[code].(object)
		said := ""
		if standard := map[string]string{"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}; r["description"] != standard[code] {
			said += fmt.Sprintf(" %q", r["description"])
		}
		if answer, err := n.content(r); err != nil {
			return "", err
		} else if answer != "" {
			said += " " + answer
		} else if s := in(r, "schema"); s != nil {
			said += " " + n.schema(s) + " " + mediaTypes(o["produces"])
		}
		if said != "" && said == last {
			line = strings.TrimSuffix(line, last) + "," + code + said
		} else {
			line += "; " + code + said
		}
		last = said
	}
	return line, nil
}

// content returns a schema with its v3 media types.
func (n *names) content(o object) (string, error) {
	of := map[string][]any{}
	for media, c := range in(o, "content") {
		s := n.schema(in(c.(object), "schema"))
		of[s] = append(of[s], media)
	}
	if len(of) > 1 {
		return "", fmt.Errorf("two schemas in %v", of)
	}
	for s, media := range of {
		return s + " " + mediaTypes(media), nil
	}
	return "", nil
}

// mediaTypes abbreviates a list of media types.
func mediaTypes(list any) string {
	all, _ := list.([]any)
	var out []string
	for _, m := range all {
		word := strings.TrimPrefix(fmt.Sprint(m), "application/")
		out = append(out, strings.TrimPrefix(word, "vnd.kubernetes."))
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// parameters returns the parameters of a path or an operation, each with a hash of its content, or
// the name of their set. The body parameter of v2 is returned in body.
func (n *names) parameters(doc, of object, body *string) string {
	list, _ := of["parameters"].([]any)
	var out []string
	for _, entry := range list {
		p := entry.(object)
		if ref := reference(p); ref != "" {
			p = in(doc, "parameters", ref)
		}
		if p["in"] == "body" {
			*body = n.schema(in(p, "schema")) + " "
			if p["required"] != true {
				*body += "optional"
			}
			continue
		}
		flat := maps.Clone(p)
		maps.Copy(flat, in(p, "schema"))
		delete(flat, "schema")
		if p["in"] == "path" {
			flat["description"] = n.text(fmt.Sprint(p["description"]))
		}
		out = append(out, fmt.Sprintf("%v.%s", p["name"], mark(encode(flat), 4)))
	}
	if len(out) == 0 {
		return ""
	}
	all := strings.Join(out, " ")
	if len(out) > 4 {
		set := "set " + mark(all, 4)
		n.sets[set] = all
		all = set
	}
	return " (" + all + ")"
}
