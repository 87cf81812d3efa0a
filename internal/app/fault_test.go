package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

const faultsPath = "/faults"

// inject injects a fault and returns its path.
func (p *people) inject(base, spec string) string {
	p.Helper()
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(p.does("root", "POST", base+faultsPath, spec, 201, "")), &made); err != nil || made.ID == "" {
		p.Fatal(err, made)
	}
	return base + faultsPath + "/" + made.ID
}

// counts compares the counts of a fault.
func (p *people) counts(path string, matched, count int) {
	p.Helper()
	var got struct{ Matched, Count int }
	if err := json.Unmarshal([]byte(p.does("root", "GET", path, "", 200, "")), &got); err != nil || got.Matched != matched || got.Count != count {
		p.Errorf("%s: %v, %+v, want %d and %d", path, err, got, matched, count)
	}
}

// Each effect changes the answer, and the next request is not affected.
func TestFaultEffects(t *testing.T) {
	p := startPeople(t, Options{FaultInjection: true})
	defer stop(t, p.app)
	for i, tt := range []struct {
		name, effect string
		code         int // 0 for no answer
		answer       string
		takesEffect  bool
	}{
		{"status", `{type: status, code: 409, reason: Conflict, message: not now}`, 409, `"message":"not now","reason":"Conflict","details":{"name":"0","kind":"configmaps"}`, false},
		{"default reason", `{type: status, code: 403}`, 403, `"reason":"Forbidden"`, false},
		{"retry", `{type: status, code: 429, retryAfterSeconds: 3}`, 429, `"retryAfterSeconds":3`, false},
		{"delay", `{type: delay, duration: 1ms}`, 200, `"name":"3"`, true},
		{"hang up", `{type: hangUp}`, 0, "", false},
		{"lose answer", `{type: loseAnswer}`, 0, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &people{t, p.app, p.client}
			at := fmt.Sprint(configMaps, "/", i)
			p.does("root", "POST", configMaps, fmt.Sprintf(`{metadata: {name: "%d"}}`, i), 201, "")
			fault := p.inject("", `{verbs: [patch], resources: [configmaps], effect: `+tt.effect+`}`)
			code, answer, header := p.patch(at)
			if code != tt.code || !strings.Contains(answer, tt.answer) {
				t.Errorf("%d %s, want %d %s", code, answer, tt.code, tt.answer)
			}
			if tt.code == 429 && header.Get("Retry-After") != "3" {
				t.Errorf("Retry-After: %q", header.Get("Retry-After"))
			}
			if now := p.does("root", "GET", at, "", 200, ""); strings.Contains(now, `"k":"v"`) != tt.takesEffect {
				t.Errorf("the object is %s", now)
			}
			p.does("root", asMerge, at, `{data: {k: v}}`, 200, "")
			p.counts(fault, 1, 1)
		})
	}
}

// A stale view and held events end with their fault.
func TestFaultsOfReads(t *testing.T) {
	p := startPeople(t, Options{FaultInjection: true})
	defer stop(t, p.app)
	p.does("root", "POST", configMaps, `{metadata: {name: a}, data: {k: before}}`, 201, "")
	before := revisionIn(p.does("root", "GET", configMaps+"/a", "", 200, ""))
	p.does("root", asMerge, configMaps+"/a", `{data: {k: after}}`, 200, "")
	view := p.inject("", `{verbs: [read], resources: [configmaps], times: -1, effect: {type: staleView, resourceVersion: "`+before+`"}}`)
	shows := func(path, want string) {
		t.Helper()
		if got := p.does("root", "GET", path, "", 200, ""); !strings.Contains(got, want) {
			t.Errorf("%s has not %s: %s", path, want, got)
		}
	}
	shows(configMaps+"/a", `"k":"before"`)
	shows(configMaps, `"k":"before"`)
	p.does("root", "GET", configMaps+"?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan", "", 422, `ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: a stale view has no initial events`)

	r, err := http.NewRequestWithContext(t.Context(), "GET", p.app.URL()+configMaps+"?watch=1&fieldSelector=metadata.name%3Da&resourceVersion="+before, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer root")
	watch, err := p.client.Do(r)
	if err != nil || watch.StatusCode != http.StatusOK {
		t.Fatal(err, watch)
	}
	defer watch.Body.Close()
	events := make(chan string)
	go func() {
		line, _ := bufio.NewReader(watch.Body).ReadString('\n')
		events <- line
	}()
	shows(configMaps+"/a", `"k":"before"`)
	select {
	case event := <-events:
		t.Errorf("the watch has an event: %s", event)
	default:
	}
	p.does("root", "DELETE", view, "", 200, "")
	if event := <-events; !strings.Contains(event, `"k":"after"`) {
		t.Errorf("the first event is %s", event)
	}
	shows(configMaps+"/a", `"k":"after"`)
}

// patch sends a patch once. The code is 0 without an answer.
func (p *people) patch(path string) (int, string, http.Header) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), "PATCH", p.app.URL()+path, strings.NewReader(`{"data":{"k":"v"}}`))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/merge-patch+json")
	r.Header.Set("Authorization", "Bearer root")
	answer, err := p.client.Do(r)
	if err != nil {
		return 0, "", nil
	}
	defer answer.Body.Close()
	var body json.RawMessage
	_ = json.NewDecoder(answer.Body).Decode(&body)
	return answer.StatusCode, string(body), answer.Header
}

// A watch gets the error as an event.
func TestFaultInWatch(t *testing.T) {
	p := startPeople(t, Options{FaultInjection: true})
	defer stop(t, p.app)
	p.inject("", `{verbs: [watch], effect: {type: status, code: 410}}`)
	got := p.does("root", "GET", configMaps+"?watch=true", "", 200, "")
	if !strings.Contains(got, `"type":"ERROR"`) || !strings.Contains(got, `"code":410`) {
		t.Error(got)
	}
}

// A fault selects requests by their attributes.
func TestFaultMatch(t *testing.T) {
	p := startPeople(t, Options{FaultInjection: true})
	defer stop(t, p.app)
	p.grant(`{apiGroups: ["", apps], resources: ["*"], verbs: ["*"]}`)
	p.does("root", "POST", configMaps, `{metadata: {name: a}}`, 201, "")
	const apps = "/apis/apps/v1/namespaces/default/deployments"
	for selection, hits := range map[string]string{
		`{}`:                                   "get list create deployments other bob agent",
		`{verbs: [get]}`:                       "get agent",
		`{verbs: [read]}`:                      "get list deployments other bob agent",
		`{verbs: [write]}`:                     "create",
		`{verbs: ["*"], names: [a]}`:           "get agent",
		`{names: [""], verbs: [list]}`:         "list deployments other bob",
		`{groups: [apps]}`:                     "deployments",
		`{groups: [""], verbs: [list]}`:        "list other bob",
		`{resources: [deployments]}`:           "deployments",
		`{namespaces: [kube-system]}`:          "other",
		`{users: [bob]}`:                       "bob",
		`{userAgents: [test-agent]}`:           "agent",
		`{subresources: [status]}`:             "status",
		`{subresources: ["*"], verbs: [get]}`:  "get status agent",
		`{subresources: [""], verbs: [get]}`:   "get agent",
		`{resources: [pods, secrets, scales]}`: "",
	} {
		t.Run(selection, func(t *testing.T) {
			p := &people{t, p.app, p.client}
			spec := strings.TrimSuffix(selection, "}")
			if spec != "{" {
				spec += ", "
			}
			fault := p.inject("", spec+`times: -1, effect: {type: status, code: 418}}`)
			var hit []string
			for _, q := range []struct{ name, user, method, path, body, agent string }{
				{"get", "root", "GET", configMaps + "/a", "", ""},
				{"list", "root", "GET", configMaps, "", ""},
				{"create", "root", "POST", configMaps, `{"metadata":{"name":"a"}}`, ""}, // exists
				{"deployments", "root", "GET", apps, "", ""},
				{"other", "root", "GET", "/api/v1/namespaces/kube-system/configmaps", "", ""},
				{"bob", "bob", "GET", configMaps, "", ""},
				{"status", "root", "GET", "/api/v1/namespaces/default/status", "", ""},
				{"agent", "root", "GET", configMaps + "/a", "", "test-agent/v1"},
				{"version", "root", "GET", "/version", "", ""},
			} {
				if p.sent(q.user, q.method, q.path, q.body, q.agent) == 418 {
					hit = append(hit, q.name)
				}
			}
			if got := strings.Join(hit, " "); got != hits {
				t.Errorf("affected: %s\nwant: %s", got, hits)
			}
			p.counts(fault, len(hit), len(hit))
			p.does("root", "DELETE", fault, "", 200, "")
		})
	}
}

// sent returns the code of the answer to a request.
func (p *people) sent(user, method, path, body, agent string) int {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), method, p.app.URL()+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+user)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", agent)
	answer, err := p.client.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// Skip and times limit a fault. Rejected requests do not count, and the first fault that selects a request applies.
func TestFaultCounts(t *testing.T) {
	p := startPeople(t, Options{FaultInjection: true})
	defer stop(t, p.app)
	first := p.inject("", `{verbs: [list], resources: [configmaps], skip: 1, times: 2, effect: {type: status, code: 418}}`)
	second := p.inject("", `{verbs: [list], resources: [configmaps], times: -1, effect: {type: status, code: 503}}`)
	p.does("bob", "GET", configMaps, "", 403, "")
	for _, code := range []int{200, 418, 418, 503, 503} {
		p.does("root", "GET", configMaps, "", code, "")
	}
	p.counts(first, 3, 2)
	p.counts(second, 2, 2)
	list := p.does("root", "GET", faultsPath, "", 200, "")
	for _, part := range []string{`"kind":"FaultList"`, `"apiVersion":"fault.anykind.dev/v1"`, `"skip":1,"times":2,"effect":{"type":"status","code":418},"matched":3,"count":2}`} {
		if !strings.Contains(list, part) {
			t.Errorf("no %s in %s", part, list)
		}
	}
	p.does("root", "DELETE", second, "", 200, "")
	p.does("root", "GET", second, "", 404, `faults.fault.anykind.dev "2" not found`)
	p.does("root", "DELETE", second, "", 404, "")
	p.does("root", "GET", configMaps, "", 200, "")
	p.inject("", `{times: -1, effect: {type: hangUp}}`)
	p.does("root", "DELETE", faultsPath, "", 200, "") // is never affected
	p.does("root", "GET", configMaps, "", 200, "")
	if list := p.does("root", "GET", faultsPath, "", 200, ""); !strings.Contains(list, `"items":[]`) {
		t.Error(list)
	}
}

// Invalid faults are rejected with the field.
func TestFaultErrors(t *testing.T) {
	p := startPeople(t, Options{FaultInjection: true})
	defer stop(t, p.app)
	const body = `the body is no object such as {"verbs":["update"],"effect":{"type":"hangUp"}}: `
	const invalid = `Fault.fault.anykind.dev "" is invalid: `
	for spec, want := range map[string]string{
		`[]`:                                    `400 ` + body + `json: cannot unmarshal array into Go value of type fault.Spec`,
		`{verb: [get], effect: {type: hangUp}}`: `400 ` + body + `json: unknown field "verb"`,
		`{}`:                                    `422 ` + invalid + `effect.type: Unsupported value: "": supported values: "delay", "hangUp", "holdEvents", "loseAnswer", "staleView", "status"`,
		`{effect: {type: staleView, resourceVersion: now}}`:          `422 ` + invalid + `effect.resourceVersion: Invalid value: "now": must be the resourceVersion of an object or a list`,
		`{effect: {type: hangUp, resourceVersion: "1"}}`:             `422 ` + invalid + `effect.resourceVersion: Forbidden: the type hangUp does not have it`,
		`{effect: {type: delay}}`:                                    `422 ` + invalid + `effect.duration: Invalid value: "": must be a time such as 2s`,
		`{effect: {type: delay, duration: -1s}}`:                     `422 ` + invalid + `effect.duration: Invalid value: "-1s": must be a time such as 2s`,
		`{effect: {type: status, code: 200}}`:                        `422 ` + invalid + `effect.code: Invalid value: 200: must be the code of an error: 400 to 599`,
		`{effect: {type: status, code: 429, retryAfterSeconds: -1}}`: `422 ` + invalid + `effect.retryAfterSeconds: Invalid value: -1: must not be negative`,
		`{effect: {type: hangUp, code: 500}}`:                        `422 ` + invalid + `effect.code: Forbidden: the type hangUp does not have it`,
		`{verbs: [POST], effect: {type: hangUp}}`:                    `422 ` + invalid + `verbs[0]: Unsupported value: "POST": supported values: "*", "create", "delete", "deletecollection", "get", "list", "patch", "read", "update", "watch", "write"`,
		`{skip: -1, times: -2, effect: {type: hangUp}}`:              `422 ` + invalid + `[skip: Invalid value: -1: must not be negative, times: Invalid value: -2: must be a number of requests, or -1 for all]`,
	} {
		code, message, _ := strings.Cut(want, " ")
		p.does("root", "POST", faultsPath, spec, map[string]int{"400": 400, "422": 422}[code], message)
	}
	p.does("root", "PUT", faultsPath, `{}`, 405, "")
	p.does("root", "POST", faultsPath+"/1", `{}`, 405, "")
	p.does("root", "GET", faultsPath+"/1/2", "", 404, "")
}

// The paths are for users with rights on them, and absent without the option.
func TestFaultAccess(t *testing.T) {
	p := startPeople(t, Options{FaultInjection: true})
	defer stop(t, p.app)
	const hangUp = `{effect: {type: hangUp}, resources: [pods]}`
	const forbidden = `forbidden: User "ann" cannot post path "/faults"`
	p.does("ann", "POST", faultsPath, hangUp, 403, forbidden)
	p.does("", "GET", faultsPath, "", 401, "")
	p.does("root", "POST", rbacPath+"/clusterroles", `{metadata: {name: faults}, rules: [{nonResourceURLs: [/faults, /faults/*], verbs: [post, get, delete]}]}`, 201, "")
	p.does("root", "POST", rbacPath+"/clusterrolebindings", `{metadata: {name: faults}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: faults}, subjects: [{kind: User, name: ann}]}`, 201, "")
	p.does("ann", "POST", faultsPath, hangUp, 201, "")
	p.does("ann", "DELETE", faultsPath+"/1", "", 200, "")
	p.does("bob", "GET", faultsPath, "", 403, "")

	without := startPeople(t, Options{})
	defer stop(t, without.app)
	without.does("root", "POST", faultsPath, hangUp, 404, "")
	without.does("root", "GET", faultsPath, "", 404, "")
}

// A fork has faults of its own.
func TestFaultOfFork(t *testing.T) {
	p := startPeople(t, Options{FaultInjection: true})
	defer stop(t, p.app)
	p.inject("", `{resources: [configmaps], times: -1, effect: {type: status, code: 418}}`)
	p.does("root", "POST", "/forks", `{name: one}`, 201, "")
	p.does("root", "GET", configMaps, "", 418, "")
	p.does("root", "GET", "/forks/one"+configMaps, "", 200, "")
	fault := p.inject("/forks/one", `{resources: [secrets], effect: {type: status, code: 503}}`)
	p.does("root", "GET", "/api/v1/secrets", "", 200, "")
	p.does("root", "GET", "/forks/one/api/v1/secrets", "", 503, "")
	p.counts(fault, 1, 1)
}

// A delayed request ends with its client.
func TestFaultDelayEnds(t *testing.T) {
	p := startPeople(t, Options{FaultInjection: true})
	fault := p.inject("", `{resources: [configmaps], effect: {type: delay, duration: 1h}}`)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", p.app.URL()+configMaps, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer root")
	if answer, err := p.client.Do(r); err == nil {
		_ = answer.Body.Close()
		t.Error(answer.Status)
	}
	p.counts(fault, 1, 1)
	stop(t, p.app) // waits for requests in progress
}
