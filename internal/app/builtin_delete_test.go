package app

import (
	"net/http"
	"strings"
	"testing"
)

// A client that deletes Jobs without a propagation policy gets a warning that their pods stay.
func TestJobsWarnOfPodsThatStay(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	const jobs = "/apis/batch/v1/namespaces/default/jobs"
	for path, want := range map[string]bool{
		jobs + "/gone": true, jobs: true, jobs + "/gone?dryRun=All": true,
		jobs + "/gone?propagationPolicy=Background": false, jobs + "/gone?propagationPolicy=Orphan": false, jobs + "/gone?orphanDependents=true": false,
		"/apis/batch/v1/namespaces/default/cronjobs/gone": false,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, a.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client(t, a, admin(t, a)).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if warning := answer.Header.Get("Warning"); strings.Contains(warning, "child pods are preserved by default") != want {
			t.Errorf("%s: %d %q", path, answer.StatusCode, warning)
		}
	}
}
