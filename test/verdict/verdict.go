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
type Counts struct{ Asked, Accepted, Refused, Different int }

func (c Counts) String() string {
	return fmt.Sprintf("%d requests: %d accepted, %d refused; %d answers differ", c.Asked, c.Accepted, c.Refused, c.Different)
}

// asked is a request with its offline response.
type asked struct {
	check.Question
	check.Answer
}

// Compare checks the objects at some paths offline and over HTTP. It reports each difference as an
// error.
func Compare(t testing.TB, paths []string, o check.Options) Counts {
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
	client, url := serve(t)
	counts := Counts{Asked: len(all)}
	differ := make([]string, len(all))
	one := func(i int) { differ[i] = difference(t.Context(), client, url, &all[i]) }
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
func serve(t testing.TB) (*http.Client, string) {
	t.Helper()
	var none []string // no controllers
	for _, name := range app.Controllers() {
		none = append(none, "-"+name)
	}
	a, err := app.Start(t.Context(), app.Options{
		AllowPrivileged: true, Controllers: none, Authorization: app.Authorization{Flags: chain.Flags{Modes: []string{"AlwaysAllow"}}},
		Admission: app.Admission{Disable: []string{
			"NamespaceLifecycle", "ServiceAccount", "PodSecurity", "Priority", "RuntimeClass", "PersistentVolumeClaimResize",
		}},
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
	return client, config.URL
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

// difference sends a request over HTTP, and returns the difference to the offline response, or "".
func difference(ctx context.Context, client *http.Client, url string, q *asked) string {
	r, err := http.NewRequestWithContext(ctx, q.Method, url+q.Path, bytes.NewReader(q.Question.Body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("User-Agent", "anykind")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", q.ContentType)
	answer, err := client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	var warnings []string
	for _, h := range answer.Header.Values("Warning") {
		warnings = append(warnings, check.Unquote(h))
	}
	if answer.StatusCode == q.Code && slices.Equal(warnings, q.Warnings) && q.same(body, q.Answer.Body) {
		return ""
	}
	return fmt.Sprintf("%s %s\n%s\noffline   %d %q\n%s\nover HTTP %d %q\n%s", q.Method, q.Path, q.Question.Body,
		q.Code, q.Warnings, steady(q.Answer.Body), answer.StatusCode, warnings, steady(body))
}

// same reports whether two responses are the same, except for values that always differ.
func (q *asked) same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	a, b = steady(a), steady(b)
	if m := generated.FindSubmatch(q.Question.Body); m != nil {
		drawn := regexp.MustCompile(regexp.QuoteMeta(string(m[1])) + `[a-z0-9]{5}"`)
		a, b = drawn.ReplaceAll(a, []byte(`"`)), drawn.ReplaceAll(b, []byte(`"`))
	}
	return bytes.Equal(a, b) || q.Code >= http.StatusBadRequest && slices.Equal(parts(a), parts(b))
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
