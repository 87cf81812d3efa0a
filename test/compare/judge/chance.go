package judge

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
)

// fairness is the manager of the status of FlowSchemas. Its controller writes after a delay, which
// depends on all FlowSchemas.
const fairness = "api-priority-and-fairness-config-consumer-v1"

// reconciled returns a FlowSchema without the writes of its controller.
func reconciled(schema map[string]any) map[string]any {
	out := without(schema, "status", "metadata.resourceVersion")
	metadata, _ := out["metadata"].(map[string]any)
	owners, ok := metadata["managedFields"].([]any)
	if !ok {
		return out
	}
	metadata = maps.Clone(metadata)
	metadata["managedFields"] = slices.DeleteFunc(slices.Clone(owners), func(owner any) bool {
		o, _ := owner.(map[string]any)
		return o["manager"] == fairness
	})
	out["metadata"] = metadata
	return out
}

// named returns a list whose items have their kind, as each has in a get.
func named(list map[string]any, kind string) map[string]any {
	items, ok := list["items"].([]any)
	if !ok {
		return list
	}
	out := maps.Clone(list)
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = item
		if object, ok := item.(map[string]any); ok {
			object = maps.Clone(object)
			object["kind"] = kind
			all[i] = object
		}
	}
	out["items"] = all
	return out
}

// byManager sorts each run of managedFields with the same operation by manager. Servers sort them by
// time first, in seconds: whether two entries of one sequence have the same second is chance.
func byManager(owners []any) []any {
	out := slices.Clone(owners)
	word := func(owner any, field string) string {
		o, _ := owner.(map[string]any)
		text, _ := o[field].(string)
		return text
	}
	for start := 0; start < len(out); {
		end := start + 1
		for end < len(out) && word(out[end], "operation") == word(out[start], "operation") {
			end++
		}
		slices.SortStableFunc(out[start:end], func(a, b any) int {
			return cmp.Or(cmp.Compare(word(a, "manager"), word(b, "manager")), cmp.Compare(word(a, "subresource"), word(b, "subresource")),
				cmp.Compare(word(a, "apiVersion"), word(b, "apiVersion")))
		})
		start = end
	}
	return out
}

var (
	address       = regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}\b`)
	nodePort      = regexp.MustCompile(`\b\d+:(\d+)/`)
	portInMessage = regexp.MustCompile(`odePort: (?:Invalid|Duplicate) value: (\d+)`)
	portInCause   = regexp.MustCompile(`^(?:Invalid|Duplicate) value: (\d+)`)
)

// cell returns a cell of a Table without ages, and without the addresses and node ports that the
// server allocated.
func (s *Server) cell(text string) string {
	if age.MatchString(text) {
		return "AGE"
	}
	text = address.ReplaceAllStringFunc(text, func(ip string) string { return s.chosen("ADDRESS", ip) })
	return nodePort.ReplaceAllStringFunc(text, s.port)
}

// port replaces the number at the end of a text, if the server allocated it.
func (s *Server) port(text string) string {
	last := digits.FindAllStringIndex(text, -1)
	at := last[len(last)-1]
	return text[:at[0]] + s.chosen("PORT", text[at[0]:at[1]]) + text[at[1]:]
}

// Patterns for a Go type of the program itself, in a message of encoding/json or of content
// negotiation. Types of the API, such as v1.ObjectMeta, are part of the message.
var (
	decodedInto = regexp.MustCompile(`Go value of type (?:\[\]|\*)*(?:handlers\.jsonPatchOp|jsonpatch\.\w+|apply\.operation)\b`)
	decodedPart = regexp.MustCompile(`Go struct field (?:jsonPatchOp|operation)\.`)
	notAList    = regexp.MustCompile(`(the requested object is (?:not )?a list) \(\*?\w+(?:\.\w+)?\)`)
)

// goTypes replaces the types of the program in a message.
func goTypes(message string) string {
	message = decodedInto.ReplaceAllString(message, "Go value of type GOTYPE")
	message = decodedPart.ReplaceAllString(message, "Go struct field GOTYPE.")
	return notAList.ReplaceAllString(message, "$1 (GOTYPE)")
}

var (
	typed = regexp.MustCompile(`(?s)^(failed to create typed patch object \([^)]*\)): (?:errors:)?\s*(\.\S[^\n]*?): .*$`)
	keys  = regexp.MustCompile(`\[[^\]]*\]`) // of items; a default may be part of a key
	words = regexp.MustCompile(`\w*[A-Za-z_]\w*`)
)

// misfit replaces the mismatched field, if the client sent it. Of several such fields, a server
// reports those that come first in a Go map, which has no order.
func (s *Server) misfit(message string) string {
	m := typed.FindStringSubmatch(message)
	if m == nil {
		return message
	}
	for _, name := range words.FindAllString(keys.ReplaceAllString(m[2], ""), -1) {
		if name != "SCOPE" && !regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).MatchString(s.sent.String()) {
			return message
		}
	}
	return m[1] + ": A FIELD THAT DOES NOT FIT"
}
