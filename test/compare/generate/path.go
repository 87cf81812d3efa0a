package generate

import (
	"slices"
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

// path requests slightly wrong paths, with every method.
func path(g *G) {
	r := g.resource(editable)
	o := g.object(r)
	g.post(r, o)
	for range 4 {
		p := g.oddPath(r)
		method := one(g, "GET", "GET", "GET", "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BOGUS", "get", "CONNECT")
		if method == "CONNECT" {
			method = "PROPFIND" // the library changes the other one
		}
		s := wire.Step{Kind: "path", Resource: r.Label(), Method: method, Path: p, Around: !strings.Contains(p, wire.Scope) || r.crowded()}
		if method != "GET" && method != "HEAD" && g.chance(2) {
			s.Header, s.Body = typed(one(g, "application/json", mergePatch)), encode(o)
		}
		if (method == "DELETE" || method == "PATCH" || method == "PUT" || method == "POST") && !strings.Contains(p, wire.Scope) {
			s.Method = "GET" // without an effect on other objects
		}
		g.add(s)
	}
}

// oddPath returns a path close to one of a resource.
func (g *G) oddPath(r *Resource) string {
	whole := pathOf(r)
	if g.chance(3) {
		whole = r.Path(namespaceOf(r), "")
	}
	switch g.IntN(16) {
	case 0:
		i := strings.LastIndex(whole, "/")
		return whole[:i] + "/" + whole[i:]
	case 1:
		return whole + "/"
	case 2:
		parts := strings.Split(whole, "/")
		i := 1 + g.IntN(len(parts)-1)
		parts[i] = one(g, "", ".", "..", "%2e", "%2E%2e", "%2f", "%00", "a%20b", "%", "%zz", "é", "*", "a:b", "a;b", "a?b", "~", "x%25y", strings.ToUpper(parts[i]), parts[i]+"%20", strings.Repeat("x", 300))
		return strings.Join(parts, "/")
	case 3:
		parts := strings.Split(whole, "/")
		i := 1 + g.IntN(len(parts)-1)
		return strings.Join(append(parts[:i:i], parts[i+1:]...), "/")
	case 4:
		parts := strings.Split(whole, "/")
		i := 1 + g.IntN(len(parts)-1)
		return strings.Join(append(append(parts[:i:i], one(g, "", ".", "..", "x", "watch", "proxy", "namespaces", "status")), parts[i:]...), "/")
	case 5:
		return whole + "/" + one(g, "status", "scale", "bogus", "log", "exec", "proxy", "finalize", "token", "status/x", "eviction", "binding", "proxy/x", "portforward", "attach", "approval")
	case 6:
		return "/" + whole
	case 7:
		return strings.Replace(whole, r.Root(), one(g, "/api", "/apis", "/api/v2", "/apis/v1", "/apis/"+r.Group, r.Root()+"x", "/API/v1", "/apis/rich.example.com/v1alpha1", "/apis/rich.example.com/v9"), 1)
	case 8:
		return r.Root() + one(g, "/watch/", "/proxy/", "/redirect/", "/namespaces/"+wire.Scope+"/watch/") + r.Plural
	case 9:
		return one(g, "/", "/api", "/api/", "/api/v1", "/api/v1/", "/apis", "/apis/", r.Root(), r.Root()+"/", "/apis/"+r.Group, "/apis/"+r.Group+"/", "/healthz", "/livez", "/readyz", "/healthz/", "/healthz/ping", "/healthz/bogus", "/readyz/ping", "/livez/ping", "/readyz?exclude=bogus", "/livez?exclude=ping", "/version", "/version/", "/bogus", "/favicon.ico", "/robots.txt", "/.well-known/bogus", "/ui", "/swagger.json", "/swaggerapi", "/apis//v1", "/api/v1//namespaces", "/index.html", "/..", "/.", "/%2e%2e/api")
	case 10:
		return strings.ToUpper(whole)
	case 11:
		return r.Path(one(g, "none", "UPPER", "a.b", "-", "%20", "default"), wire.Scope)
	case 12:
		return r.Root() + "/" + one(g, r.Kind, strings.ToLower(r.Kind), r.Plural+"x", r.Plural+".v1", "") + "/" + wire.Scope
	case 13:
		if r.Namespaced {
			return r.Path("", wire.Scope)
		}
		return r.Root() + "/namespaces/" + wire.Scope + "/" + r.Plural + one(g, "", "/"+wire.Scope)
	case 14:
		return whole + one(g, "#x", "?", "??", "?&", "?=", "?%", "?a=%zz", "?a;b", "?a=b&a=c", "%3Fx=y", ";x=y", "?watch=true&watch=false")
	}
	return whole
}

// query sends invalid query parameters.
func query(g *G) {
	r := g.resource(func(r *Resource) bool { return editable(r) && r.Can("patch") })
	o := g.object(r)
	g.post(r, o)
	for range 3 {
		var q []string
		for range 1 + g.IntN(3) {
			name := one(g, "dryRun", "fieldManager", "fieldValidation", "force", "limit", "continue", "labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "timeoutSeconds", "pretty", "gracePeriodSeconds", "propagationPolicy", "allowWatchBookmarks", "sendInitialEvents", "timeout", "bogus", "includeObject", "includeUninitialized", "export", "exact", "DryRun", "ignoreStoreReadErrorWithClusterBreakingPotential", "preconditions.uid", "shardSelector")
			value := one(g, "", "x", "true", "false", "1", "0", "-1", "All", "a,b", "%20", "%00", "%ff", "1.5", "1s", "99999999999999999999", "Strict", "metadata.name=x", "é", "+", "null")
			q = append(q, name+one(g, "=", "=", "=", "==")+value)
		}
		method, path, body, header, around := "GET", pathOf(r), []byte(nil), []wire.Field(nil), false
		switch g.IntN(6) {
		case 0:
			path = r.Path(namespaceOf(r), "")
			if !r.Namespaced || r.crowded() {
				// The first of several selectors counts, and may select objects of other sequences.
				around = slices.ContainsFunc(q, func(parameter string) bool { return strings.HasPrefix(parameter, "labelSelector=") })
				q = append(q, "labelSelector=scope%3D"+wire.Scope)
			}
		case 1:
			method, body, header = "PUT", encode(o), typed("application/json")
		case 2:
			method, body, header = "PATCH", []byte(`{"metadata":{"labels":{"q":"r"}}}`), typed(mergePatch)
		case 3:
			method, path, body, header = "POST", r.Path(namespaceOf(r), ""), encode(o), typed("application/json")
		case 4:
			method = "DELETE"
		}
		g.add(wire.Step{Kind: "query", Resource: r.Label(), Method: method, Path: path + joined(q), Body: body, Header: header, Around: around})
	}
}

// header sends invalid headers with valid requests.
func header(g *G) {
	r := g.resource(func(r *Resource) bool { return editable(r) && r.Can("patch") })
	o := g.object(r)
	g.post(r, o)
	for range 3 {
		f := one(g,
			wire.Field{Name: "If-Match", Value: one(g, `"1"`, "*", "1")}, wire.Field{Name: "If-None-Match", Value: one(g, `"1"`, "*")},
			wire.Field{Name: "If-Modified-Since", Value: "Wed, 21 Oct 2037 07:28:00 GMT"}, wire.Field{Name: "Range", Value: "bytes=0-10"},
			wire.Field{Name: "Origin", Value: "http://example.com"}, wire.Field{Name: "Access-Control-Request-Method", Value: "GET"},
			wire.Field{Name: "X-Http-Method-Override", Value: "DELETE"}, wire.Field{Name: "X-Forwarded-For", Value: "1.2.3.4"},
			wire.Field{Name: "User-Agent", Value: one(g, "", "kubectl/v1.36.0 (linux/amd64) kubernetes/abc", "/x", "a b/c", strings.Repeat("u", 200), "Mozilla/5.0 (X11)", "é/1")},
			wire.Field{Name: "Authorization", Value: one(g, "", "Bearer", "Bearer ", "Bearer x", "bearer admin-token", "Basic YTpi", "Bogus", "Bearer  admin-token", "Bearer admin-token x")},
			wire.Field{Name: "Impersonate-User", Value: one(g, "eve", "", "system:admin")}, wire.Field{Name: "Impersonate-Group", Value: "x"}, wire.Field{Name: "Impersonate-Extra-A", Value: "x"},
			wire.Field{Name: "Accept-Encoding", Value: "gzip"}, wire.Field{Name: "Audit-Id", Value: "x"}, wire.Field{Name: "Traceparent", Value: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
			wire.Field{Name: "Kubectl-Command", Value: "get"}, wire.Field{Name: "Expect", Value: "100-continue"}, wire.Field{Name: "X-Long", Value: strings.Repeat("l", 8000)},
			wire.Field{Name: "X-Remote-User", Value: "eve"}, wire.Field{Name: "Cache-Control", Value: "no-cache"}, wire.Field{Name: "Content-Language", Value: "x"}, wire.Field{Name: "Cookie", Value: "a=b"},
		)
		s := wire.Step{Kind: "header " + f.Name, Resource: r.Label(), Method: "GET", Path: pathOf(r), HTTP1: g.chance(4)}
		switch g.IntN(5) {
		case 0:
			s.Method, s.Body, s.Header = "PUT", encode(o), typed("application/json")
		case 1:
			s.Method, s.Body, s.Header = "PATCH", []byte(`{"metadata":{"labels":{"q":"r"}}}`), typed(mergePatch)
		case 2:
			s.Path = r.Path(namespaceOf(r), "") + "?labelSelector=scope%3D" + wire.Scope
		case 3:
			s.Method = one(g, "OPTIONS", "HEAD", "DELETE")
		}
		s.Header = append(s.Header, f)
		g.add(s)
	}
}
