// Package judge finds the differences between two responses to the same request.
//
// First it replaces values that always differ, using earlier responses of the same server: the first
// uid becomes "uid-1", and a resourceVersion becomes the number of its changes. The order of the keys
// of an object does not count; everything else does. The package knows the form of responses (Status,
// lists, Tables, events, managed fields). It does not know which server sent them, or why they were
// requested.
package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/test/compare/wire"
)

// A Normal is a response without values that differ between servers.
type Normal struct {
	Failed string
	Code   int
	Header map[string][]string
	Body   any
	Events []any // of a watch
}

// A Server has the values in the responses of one server to a sequence.
type Server struct {
	scope     string
	sent      strings.Builder
	uids      map[string]string
	revisions map[string][]string // of each object, in order of appearance
	numbers   map[string]bool     // all revisions
	given     map[string]string   // names, addresses and ports that the server chose
	prefixes  []*regexp.Regexp    // of names that the server generates
}

// NewServer returns an empty Server for the sequence of that name.
func NewServer(scope string) *Server {
	return &Server{scope: scope, uids: map[string]string{}, revisions: map[string][]string{},
		numbers: map[string]bool{}, given: map[string]string{}}
}

// Sent records a request, so that a value from the client does not count as one that the server chose.
func (s *Server) Sent(step wire.Step) {
	s.sent.WriteString(step.Path + "\n")
	s.sent.Write(step.Body)
	s.sent.WriteString("\n")
	for _, m := range generate.FindAllSubmatch(step.Body, -1) {
		var name string
		if json.Unmarshal([]byte(`"`+string(m[1])+`"`), &name) != nil {
			continue
		}
		if len(name) > longestPrefix {
			name = strings.ToValidUTF8(name[:longestPrefix], "")
		}
		quoted := strconv.Quote(name)
		s.generated(name)
		if quoted = quoted[1 : len(quoted)-1]; quoted != name { // in messages
			s.generated(quoted)
		}
	}
}

// generated makes names with a prefix comparable.
func (s *Server) generated(prefix string) {
	prefix = strings.ReplaceAll(prefix, s.scope, "SCOPE")
	s.prefixes = append(s.prefixes, regexp.MustCompile(`(`+regexp.QuoteMeta(prefix)+`)[bcdfghjklmnpqrstvwxz2456789]{5}\b`))
}

// longestPrefix is the maximal length of the part of generateName in a name.
const longestPrefix = 58

// Normal returns a normalized response. It does not read the stream of a watch; see Events.
func (s *Server) Normal(a *wire.Answer) *Normal {
	n := &Normal{Failed: a.Failed, Code: a.Code, Header: map[string][]string{}}
	mediaType := a.Header.Get("Content-Type")
	if len(a.Body) > 0 {
		n.Body = s.value("", s.learn(tree(mediaType, a.Body)))
	}
	for name, values := range a.Header {
		if v := s.header(name, values); v != nil {
			n.Header[name] = v
		}
	}
	for name, values := range a.Trailer {
		n.Header["trailer "+name] = values
	}
	return n
}

// Events returns the normalized events of a watch so far.
func (s *Server) Events(a *wire.Answer) *Normal {
	n := &Normal{Failed: a.Stream.Failed()}
	for _, frame := range a.Stream.Frames() {
		if event := tree(a.Header.Get("Content-Type"), frame); !passing(event) {
			n.Events = append(n.Events, s.value("", s.learn(event)))
		}
	}
	return n
}

// passing reports whether an event is a periodic bookmark.
func passing(event any) bool {
	e, _ := event.(map[string]any)
	object, _ := e["object"].(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	return e["type"] == "BOOKMARK" && metadata["annotations"] == nil
}

// header returns the values of a header field, nil if they are not compared.
func (s *Server) header(name string, values []string) []string {
	switch {
	case name == "Date", name == "Audit-Id", strings.HasPrefix(name, "X-Kubernetes-Pf-"):
		return nil // the last are from API priority and fairness, which anykind implements in its own way
	case name == "Content-Length":
		return nil // revisions and addresses differ in length
	case name == "Etag", name == "Last-Modified", name == "Expires":
		return []string{"given"}
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = s.text(v)
	}
	if name == "Vary" || name == "Warning" {
		slices.Sort(out)
	}
	return out
}

var (
	uuid          = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timestamp     = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	current       = regexp.MustCompile(`current: \d+`)
	recorded      = regexp.MustCompile(`in record \(\d+\)`) // after an unseen write, such as that of a status by a controller
	duplicatePort = regexp.MustCompile(`duplicate nodePort: \{(\w+) \d+\}`)
	tooOld        = regexp.MustCompile(`too old resource version: \d+ \(\d+\)`)
	mentioned     = regexp.MustCompile(`(?i)(resource ?version[^0-9-]{0,25})(\d+)`) // a revision in a message
	selfType      = regexp.MustCompile(`\bselfType\d+\b`)                           // a name from the CEL compiler
	webToken      = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]+`)
	hash          = regexp.MustCompile(`hash=[0-9A-F]{100,}`)
	generate      = regexp.MustCompile(`"generateName":"((?:[^"\\]|\\.)+)"`)
	age           = regexp.MustCompile(`^(\d+(ms|s|m|h|d))+$`)
)

// learn records the revisions and names of the objects in a tree, before they are replaced: a message
// may have them earlier than the object does.
func (s *Server) learn(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if metadata, ok := v[name].(map[string]any); ok && name == "metadata" {
				s.learnMetadata(metadata)
			}
			s.learn(v[name])
		}
	case []any:
		for _, e := range v {
			s.learn(e)
		}
	}
	return v
}

func (s *Server) learnMetadata(m map[string]any) {
	revision, _ := m["resourceVersion"].(string)
	if revision == "" || revision == "0" {
		return
	}
	s.numbers[revision] = len(revision) > 1 // a digit is anything
	if key := identity(m); key != "" && !slices.Contains(s.revisions[key], revision) {
		s.revisions[key] = append(s.revisions[key], revision)
	}
}

// identity identifies an object; it is "" for a list.
func identity(metadata map[string]any) string {
	if uid, _ := metadata["uid"].(string); uid != "" {
		return uid
	}
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	if name == "" {
		return ""
	}
	return namespace + "/" + name
}

// wasSent reports whether a request contained a text.
func (s *Server) wasSent(text string) bool { return strings.Contains(s.sent.String(), text) }

// value returns a normalized tree.
func (s *Server) value(at string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		switch v["kind"] {
		case "CustomResourceDefinition":
			v = settling(v)
		case "FlowSchema":
			v = reconciled(v)
		case "FlowSchemaList":
			v = named(v, "FlowSchema")
		case "Namespace":
			v = without(v, "status.conditions")
		case "APIResourceList":
			v = inOrder(v, "resources", func(r map[string]any) string { return fmt.Sprint(r["name"]) })
		case "SelfSubjectRulesReview":
			if status, ok := v["status"].(map[string]any); ok {
				all := func(rule map[string]any) string { return fmt.Sprint(rule) }
				v = maps.Clone(v)
				v["status"] = inOrder(inOrder(status, "resourceRules", all), "nonResourceRules", all)
			}
		}
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out[s.text(name)] = s.field(at, v, name)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			if text, ok := e.(string); ok && at == "cells" {
				e = s.cell(text)
			}
			out[i] = s.value(at, e)
		}
		return out
	case string:
		return s.text(v)
	}
	return v
}

// settling returns a definition without its status and revision. kube-apiserver updates both some time
// after its response.
func settling(d map[string]any) map[string]any {
	return without(without(d, "status"), "metadata.resourceVersion")
}

// inOrder returns an object with the list in a field sorted by a key. kube-apiserver lists custom
// resources, and the rules of a user, in any order.
func inOrder(of map[string]any, field string, by func(map[string]any) string) map[string]any {
	list, ok := of[field].([]any)
	if !ok {
		return of
	}
	word := func(one any) string {
		m, _ := one.(map[string]any)
		return by(m)
	}
	of = maps.Clone(of)
	of[field] = slices.SortedFunc(slices.Values(list), func(a, b any) int { return strings.Compare(word(a), word(b)) })
	return of
}

// without returns a copy of an object without some fields. A name may be a path with dots.
func without(in map[string]any, names ...string) map[string]any {
	out := maps.Clone(in)
	for _, name := range names {
		outer, inner, found := strings.Cut(name, ".")
		if m, ok := out[outer].(map[string]any); ok && found {
			out[outer] = without(m, inner)
		} else if !found {
			delete(out, name)
		}
	}
	return out
}

// field returns a normalized field of an object; at is the name of the object's own field.
func (s *Server) field(at string, in map[string]any, name string) any {
	v := in[name]
	text, _ := v.(string)
	switch name {
	case "resourceVersion":
		if at == "metadata" && text != "" && text != "0" {
			return s.revision(in, text)
		}
		if s.numbers[text] && !s.wasSent(text) {
			return "REVISION" // a patch copied it
		}
	case "continue":
		if at == "metadata" && text != "" {
			return "CONTINUE"
		}
	case "clusterIP":
		if text != "" && text != "None" {
			return s.chosen("ADDRESS", text)
		}
	case "clusterIPs":
		if list, ok := v.([]any); ok {
			out := make([]any, len(list))
			for i, e := range list {
				address, ok := e.(string)
				if out[i] = e; ok && address != "None" {
					out[i] = s.chosen("ADDRESS", address)
				}
			}
			return out
		}
	case "message":
		if path, _ := in["field"].(string); strings.HasSuffix(path, "odePort") {
			v = portInCause.ReplaceAllStringFunc(text, s.port)
		}
	case "managedFields":
		if list, ok := v.([]any); ok {
			return s.value(name, byManager(list))
		}
	case "serverAddress":
		return "ADDRESS"
	case "nodePort", "healthCheckNodePort":
		if port, ok := v.(json.Number); ok && port != "0" {
			return s.chosen("PORT", port.String())
		}
	}
	return s.value(name, v)
}

// chosen returns the placeholder of a value that the server chose, or else the value.
func (s *Server) chosen(what, value string) string {
	if s.wasSent(value) {
		return value
	}
	if s.given[value] == "" {
		s.given[value] = fmt.Sprintf("%s-%d", what, len(s.given)+1)
	}
	return s.given[value]
}

// revision returns the placeholder of a revision with its position among the revisions of its object.
// Revisions of lists share one placeholder.
func (s *Server) revision(metadata map[string]any, revision string) string {
	key := identity(metadata)
	if key == "" {
		return "REVISION"
	}
	return fmt.Sprintf("revision-%d", slices.Index(s.revisions[key], revision)+1)
}

// text returns a normalized text.
func (s *Server) text(v string) string {
	v = strings.ReplaceAll(v, s.scope, "SCOPE")
	v = uuid.ReplaceAllStringFunc(v, func(uid string) string {
		if s.wasSent(uid) && s.uids[uid] == "" {
			return uid
		}
		if s.uids[uid] == "" {
			s.uids[uid] = fmt.Sprintf("uid-%d", len(s.uids)+1)
		}
		return s.uids[uid]
	})
	v = timestamp.ReplaceAllStringFunc(v, func(at string) string {
		t, err := time.Parse(time.RFC3339Nano, at)
		switch left := time.Until(t); {
		case err != nil || left < -15*time.Minute || left > 48*time.Hour || s.wasSent(at):
			return at
		case left > 14*time.Minute+30*time.Second: // the end of a token, say
			return fmt.Sprintf("in %d minutes", left.Round(time.Minute)/time.Minute)
		}
		_, fraction, _ := strings.Cut(at, ".")
		return fmt.Sprintf("TIME-%d", max(len(fraction)-1, 0)) // the number of digits after the point
	})
	for _, prefix := range s.prefixes {
		v = prefix.ReplaceAllStringFunc(v, func(name string) string {
			if s.given[name] == "" {
				s.given[name] = fmt.Sprintf("%sGENERATED-%d", prefix.FindStringSubmatch(name)[1], len(s.given)+1)
			}
			return s.given[name]
		})
	}
	v = current.ReplaceAllString(v, "current: REVISION")
	v = duplicatePort.ReplaceAllString(v, "duplicate nodePort: {$1 PORT}")
	v = recorded.ReplaceAllString(v, "in record (REVISION)")
	v = tooOld.ReplaceAllString(v, "too old resource version: REVISION (REVISION)")
	v = selfType.ReplaceAllString(v, "selfType")
	v = webToken.ReplaceAllString(v, "TOKEN")
	v = hash.ReplaceAllString(v, "hash=HASH")
	v = s.misfit(goTypes(v))
	v = portInMessage.ReplaceAllStringFunc(v, s.port)
	return mentioned.ReplaceAllStringFunc(v, func(at string) string {
		m := mentioned.FindStringSubmatch(at)
		if s.numbers[m[2]] {
			return m[1] + "REVISION"
		}
		return at
	})
}
