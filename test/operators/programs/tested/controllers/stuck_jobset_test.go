//go:build verify

package controllers

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// The finding of jobset in real time: a JobSet whose Jobs complete before the response to the resumption of the last one
// stays Suspended. Another one does not.
func TestStuckJobSet(t *testing.T) {
	config := realServer(t, directory(t, "sigs.k8s.io/jobset", "config/components/crd/bases"))
	c, err := client.New(config, client.Options{Scheme: jobSetScheme()})
	if err != nil {
		t.Fatal(err)
	}
	var resumed atomic.Int32
	over := make(chan struct{})
	release := sync.OnceFunc(func() { close(over) })
	slow := wrap(config, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/jobs/late-workers-") && resumed.Add(1) == 2 {
			<-over
		}
		return response, err
	})
	run(t, slow, startJobSet)
	run(t, config, runJobs)
	t.Cleanup(release)

	for _, name := range []string{"late", "punctual"} {
		js := resumable(name)
		create(t, c, js)
		until(t, func() bool { return has(t, c, name, jobset.JobSetSuspended) })
		if err := c.Patch(t.Context(), js, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`))); err != nil {
			t.Fatal(err)
		}
		if name == "late" {
			until(t, func() bool { return completed(t, c) == 3 })
			release()
		}
		until(t, func() bool { return has(t, c, name, jobset.JobSetCompleted) })
	}
	if has(t, c, "punctual", jobset.JobSetSuspended) || within(t, 3*time.Second, func() bool { return !has(t, c, "late", jobset.JobSetSuspended) }) {
		t.Error("the finding is gone")
	}
}

// resumable is a suspended JobSet that starts in order.
func resumable(name string) *jobset.JobSet {
	yes := true
	js := aJobSet(func(spec *jobset.JobSetSpec) {
		spec.StartupPolicy.StartupPolicyOrder = jobset.InOrder
		spec.Suspend = &yes
	})
	js.Name = name
	return js
}

// has reports that the condition of the JobSet is true.
func has(t *testing.T, c client.Client, name string, condition jobset.JobSetConditionType) bool {
	js := resumable(name)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(js), js); err != nil {
		t.Error(err)
	}
	return apimeta.IsStatusConditionTrue(js.Status.Conditions, string(condition))
}

// completed is the number of Jobs that have completed.
func completed(t *testing.T, c client.Client) (n int) {
	var jobs batchv1.JobList
	if err := c.List(t.Context(), &jobs); err != nil {
		t.Error(err)
	}
	for _, j := range jobs.Items {
		if j.Status.CompletionTime != nil {
			n++
		}
	}
	return n
}
