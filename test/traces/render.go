package traces

import (
	"fmt"
	"slices"
	"strings"

	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
)

// shared are the spans that anykind and kube-apiserver both have, besides those of requests. Others are left out
// of the transcript, and their children stand under the span above.
var shared = []string{
	"authentication", "audit", "constrainedimpersonation", "priorityandfairness", "authorization", "Get", "List", "Create", "Update", "Patch",
	"Delete", "Call mutating webhook", "Call validating webhook", "HTTP POST",
}

// volatile are attributes whose values differ between runs.
var volatile = []string{
	"server.port", "network.peer.port", "url.full", "http.response.body.size", "UID", "audit-id",
}

// render returns the shared spans of a trace as a tree, with their attributes.
func render(own *tracev1.Span, all []*tracev1.Span) string {
	slices.SortStableFunc(all, func(a, b *tracev1.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	out := &strings.Builder{}
	var below func(parent []byte, depth int)
	below = func(parent []byte, depth int) {
		for _, s := range all {
			top := len(parent) == 0 && (len(s.ParentSpanId) == 0 || remote(s))
			if !top && (len(parent) == 0 || string(s.ParentSpanId) != string(parent)) {
				continue
			}
			if s.Kind != tracev1.Span_SPAN_KIND_SERVER && !slices.Contains(shared, s.Name) {
				below(s.SpanId, depth)
				continue
			}
			fmt.Fprintf(out, "%s%s\n", strings.Repeat("  ", depth), title(s))
			for _, line := range attributes(s) {
				fmt.Fprintf(out, "%s    %s\n", strings.Repeat("  ", depth), line)
			}
			below(s.SpanId, depth+1)
		}
	}
	below(nil, 0)
	return out.String()
}

// title returns a line with the name, kind, parent and status of a span.
func title(s *tracev1.Span) string {
	line := s.Name
	if s.Kind != tracev1.Span_SPAN_KIND_INTERNAL {
		line += " (" + strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")) + ")"
	}
	if len(s.ParentSpanId) > 0 && remote(s) {
		line += " of the client's"
	}
	for range s.Links {
		line += " linked"
	}
	if s.Status.GetCode() != tracev1.Status_STATUS_CODE_UNSET {
		line += fmt.Sprintf(" %v %q", s.Status.Code, s.Status.Message)
	}
	return line
}

func attributes(s *tracev1.Span) (lines []string) {
	for _, a := range s.Attributes {
		value := ""
		if !slices.Contains(volatile, a.Key) {
			value = "=" + a.Value.GetStringValue()
			if value == "=" && a.Value.GetIntValue() != 0 {
				value = fmt.Sprintf("=%d", a.Value.GetIntValue())
			}
		}
		lines = append(lines, a.Key+value)
	}
	slices.Sort(lines)
	return lines
}
