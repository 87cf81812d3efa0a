// Package verdict compares the offline results of anykind check with the responses of a server over
// HTTP.
//
// It runs internal/offline/check on files, sends each of its requests to a server, and compares code,
// body and warnings byte by byte. It knows the parts of a response that always differ: times, uids,
// revisions, and random values of a server. Its tests also cover other commands for definitions: crd
// try, crd infer in comparison with published definitions, and crd docs.
package verdict

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/anykind/anykind/internal/access/authz/chain"
	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/network/kubeconfig"
	"github.com/anykind/anykind/internal/offline/check"
)

// Counts are the numbers of comparisons.
type Counts struct{ Asked, Updates, Accepted, Refused, Different int }

func (c Counts) String() string {
	return fmt.Sprintf("%d requests, %d of them updates: %d accepted, %d refused; %d answers differ", c.Asked, c.Updates, c.Accepted, c.Refused, c.Different)
}

// asked is a request with its offline response.
type asked struct {
	check.Question
	check.Answer
}

// A Server answers requests.
type Server struct {
	Ask func(context.Context, check.Question) (check.Answer, error)
	// differ returns the difference between two responses to a request without values that always
	// differ, or "".
	differ func(q check.Question, offline, online check.Answer) string
	// tries is the number of requests after which a difference counts: the errors of a kube-apiserver
	// can depend on the order of a Go map.
	tries int
}

// Compare checks the objects at some paths offline and over HTTP, by a server of this process. It
// reports each difference as an error.
func Compare(t testing.TB, paths []string, o check.Options) Counts {
	t.Helper()
	return CompareWith(t, serve(t), paths, o)
}

// CompareWith is Compare with another server.
func CompareWith(t testing.TB, server Server, paths []string, o check.Options) Counts {
	t.Helper()
	var mu sync.Mutex
	var all []asked
	o.Observe = func(q check.Question, a check.Answer) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, asked{q, a})
	}
	o.AllowPrivileged = true
	if _, err := check.Run(t.Context(), paths, nil, o); err != nil {
		t.Fatal(err)
	}
	counts := Counts{Asked: len(all)}
	differ := make([]string, len(all))
	one := func(i int) { differ[i] = difference(t.Context(), server, &all[i]) }
	var group sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range all {
		if !strings.Contains(all[i].Path, "dryRun=") { // it stores the object, for later requests
			one(i)
			continue
		}
		slots <- struct{}{}
		group.Go(func() { one(i); <-slots })
	}
	group.Wait()
	for i, text := range differ {
		if all[i].Method == http.MethodPut {
			counts.Updates++
		}
		if all[i].Code < http.StatusBadRequest {
			counts.Accepted++
		} else {
			counts.Refused++
		}
		if text != "" {
			counts.Different++
			t.Error(text)
		}
	}
	return counts
}

// serve starts a server with the admission plugins of an Offline.
func serve(t testing.TB) Server {
	t.Helper()
	var none []string // no controllers
	for _, name := range app.Controllers() {
		none = append(none, "-"+name)
	}
	a, err := app.Start(t.Context(), app.Options{
		AllowPrivileged: true, Controllers: none, Authorization: app.Authorization{Flags: chain.Flags{Modes: []string{"AlwaysAllow"}}},
		Admission: app.Admission{Disable: app.NeedsOthers()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop(context.Background()) })
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, a.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := kubeconfig.Find(kubeconfig.Options{Files: []string{file}})
	if err != nil {
		t.Fatal(err)
	}
	client := config.Client()
	t.Cleanup(client.CloseIdleConnections)
	for _, made := range []string{"clusterroles", "clusterrolebindings", "namespaces/kube-system/roles", "namespaces/kube-system/rolebindings", "namespaces/kube-public/roles", "namespaces/kube-public/rolebindings"} {
		clear(t, client, config.URL+"/apis/rbac.authorization.k8s.io/v1/"+made)
	}
	clear(t, client, config.URL+"/api/v1/namespaces/default/services/kubernetes")
	return Server{
		Ask: func(ctx context.Context, q check.Question) (check.Answer, error) {
			return ask(ctx, client, config.URL, q)
		},
		differ: differBytes, tries: 1,
	}
}

// clear deletes objects of the server whose names the compared objects need.
func clear(t testing.TB, client *http.Client, url string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", url, answer.Status)
	}
}

// ask sends a request over HTTP.
func ask(ctx context.Context, client *http.Client, url string, q check.Question) (check.Answer, error) {
	r, err := http.NewRequestWithContext(ctx, q.Method, url+q.Path, bytes.NewReader(q.Body))
	if err != nil {
		return check.Answer{}, err
	}
	r.Header.Set("User-Agent", "anykind")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", q.ContentType)
	answer, err := client.Do(r)
	if err != nil {
		return check.Answer{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return check.Answer{Code: answer.StatusCode, Body: body, Warnings: Warnings(answer.Header)}, err
}

// Warnings returns the texts of the Warning headers of a response.
func Warnings(h http.Header) (texts []string) {
	for _, w := range h.Values("Warning") {
		texts = append(texts, check.Unquote(w))
	}
	return texts
}

// difference sends a request to a server, and returns the difference to the offline response, or "".
func difference(ctx context.Context, server Server, q *asked) string {
	var text string
	for range server.tries {
		a, err := server.Ask(ctx, q.Question)
		if err != nil {
			return err.Error()
		}
		if text = server.differ(q.Question, q.Answer, a); text == "" {
			return ""
		}
	}
	return fmt.Sprintf("%s %s\n%s\n%s", q.Method, q.Path, q.Question.Body, text)
}

// differBytes compares the bytes of two responses.
func differBytes(q check.Question, offline, online check.Answer) string {
	a, b := steady(offline.Body), steady(online.Body)
	x, y := a, b
	if m := generated.FindSubmatch(q.Body); m != nil {
		drawn := regexp.MustCompile(regexp.QuoteMeta(string(m[1])) + `[a-z0-9]{5}"`)
		x, y = drawn.ReplaceAll(a, []byte(`"`)), drawn.ReplaceAll(b, []byte(`"`))
	}
	same := bytes.Equal(x, y) || offline.Code >= http.StatusBadRequest && slices.Equal(parts(x), parts(y))
	if same && offline.Code == online.Code && slices.Equal(offline.Warnings, online.Warnings) {
		return ""
	}
	return fmt.Sprintf("offline   %d %q\n%s\nover HTTP %d %q\n%s", offline.Code, offline.Warnings, a, online.Code, online.Warnings, b)
}

// parts returns the parts of an error. Errors about a map have no order, as in Kubernetes.
func parts(body []byte) []string {
	all := regexp.MustCompile(`, |},{|[][]`).Split(string(body), -1)
	slices.Sort(all)
	return all
}

// unsteady matches values that always differ: random ones, and times.
var unsteady = regexp.MustCompile(`"(uid|[a-z./]*controller-uid|creationTimestamp|time|timeAdded|lastTransitionTime|lastPhaseTransitionTime|resourceVersion|clusterIP|clusterIPs|nodePort|healthCheckNodePort)":("[^"]*"|\d+|\["10\.[^]]*\])`)

// generated matches a generateName.
var generated = regexp.MustCompile(`"?generateName"?: *"?([^"\s,}]+)`)

// requester matches the creator of a CertificateSigningRequest, which depends on the server's client
// certificate.
var requester = regexp.MustCompile(`"(extra|groups|username)":({[^}]*}|\[[^]]*\]|"[^"]*"),?`)

// steady returns a response without such values.
func steady(body []byte) []byte {
	for quoted := []byte(`\"`); bytes.Contains(body, quoted); { // in messages with a quoted object
		body = bytes.ReplaceAll(body, quoted, []byte(`"`))
	}
	body = unsteady.ReplaceAll(body, []byte(`"$1":""`))
	if bytes.Contains(body, []byte(`"kind":"CertificateSigningRequest"`)) {
		body = requester.ReplaceAll(body, nil)
	}
	return body
}
