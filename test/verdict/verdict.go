// Package verdict compares what anykind check says offline with what a server says over HTTP.
//
// It has internal/offline/check look at files, sends each request that this makes of an object to a server,
// and compares code, body and warnings byte by byte. It knows which parts of an answer are never the
// same twice: times, uids, revisions, and what a server draws by lot. Its tests show besides what other
// commands say of definitions: crd try, crd infer beside what projects publish, and crd docs.
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

// Counts say how much was compared.
type Counts struct{ Asked, Accepted, Refused, Different int }

func (c Counts) String() string {
	return fmt.Sprintf("%d requests: %d accepted, %d refused; %d answers differ", c.Asked, c.Accepted, c.Refused, c.Different)
}

// asked is a question with the answer that it got offline.
type asked struct {
	check.Question
	check.Answer
}

// Compare has the objects at some paths checked offline and over HTTP. It reports each difference as an
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
		if !strings.Contains(all[i].Path, "dryRun=") { // which is stored, for those after it
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

// serve starts a server that asks the plugins that an Offline asks.
func serve(t testing.TB) (*http.Client, string) {
	t.Helper()
	var none []string // of the controllers
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

// clear deletes what a server makes for itself, for which others would have no name left.
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

// difference sends a question over HTTP, and says how the answer differs from that offline, or "".
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

// same reports whether two answers to a question are the same, but for what never is.
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

// parts are those of a refusal. What is wrong with a map has no order, in Kubernetes neither.
func parts(body []byte) []string {
	all := regexp.MustCompile(`, |},{|[][]`).Split(string(body), -1)
	slices.Sort(all)
	return all
}

// What is never the same twice: what is drawn by lot, and when it was.
var unsteady = regexp.MustCompile(`"(uid|[a-z./]*controller-uid|creationTimestamp|time|timeAdded|lastTransitionTime|lastPhaseTransitionTime|resourceVersion|clusterIP|clusterIPs|nodePort|healthCheckNodePort)":("[^"]*"|\d+|\["10\.[^]]*\])`)

// The end of a name that is made of a generateName.
var generated = regexp.MustCompile(`"?generateName"?: *"?([^"\s,}]+)`)

// A CertificateSigningRequest says who has made it, by the certificate that was made for the server.
var requester = regexp.MustCompile(`"(extra|groups|username)":({[^}]*}|\[[^]]*\]|"[^"]*"),?`)

// steady is an answer without that.
func steady(body []byte) []byte {
	for quoted := []byte(`\"`); bytes.Contains(body, quoted); { // where a message has the object
		body = bytes.ReplaceAll(body, quoted, []byte(`"`))
	}
	body = unsteady.ReplaceAll(body, []byte(`"$1":""`))
	if bytes.Contains(body, []byte(`"kind":"CertificateSigningRequest"`)) {
		body = requester.ReplaceAll(body, nil)
	}
	return body
}
