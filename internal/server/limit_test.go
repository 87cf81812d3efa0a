package server

import (
	"net/http"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/utils/ptr"

	"github.com/anykind/anykind/internal/access/fairness"
	"github.com/anykind/anykind/internal/object/request"
)

// However a request ends, its seat is free. A watch needs it until it has begun.
func TestSeatsAreFreed(t *testing.T) {
	every := []string{"*"}
	d := fairness.New(fairness.Options{
		Seats: 1, Timeout: time.Minute, Stored: func(string, string) (int64, int64) { return -1, 0 },
		Levels: map[string]flowcontrolv1.PriorityLevelConfigurationSpec{"l": {
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: ptr.To(int32(1)), LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		}},
		Schemas: map[string]flowcontrolv1.FlowSchemaSpec{flowcontrolv1.FlowSchemaNameCatchAll: {
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "l"},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects:      []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: "*"}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: every, APIGroups: every, Resources: every, Namespaces: every, ClusterScope: true}},
			}},
		}},
	})
	var within func(r *http.Request)
	o := everyone(func(_ http.ResponseWriter, r *http.Request) { within(r) })
	o.Fairness = d
	s := New(o)
	served := func() int {
		_, serving := d.InFlight()
		return serving[0] + serving[1]
	}
	for name, do := range map[string]func(r *http.Request){
		"returns": func(*http.Request) {
			if n := served(); n != 1 {
				t.Errorf("%d requests are served", n)
			}
			began := time.Now()
			if w := ask(s, "GET", "/apis/g/v1/things/y", "bob"); w.Code != 429 || w.Header().Get("Retry-After") != "1" || time.Since(began) < RejectionDelay {
				t.Errorf("a second request gets %d after %v, and may come again after %q s", w.Code, time.Since(began), w.Header().Get("Retry-After"))
			}
		},
		"panics": func(*http.Request) { panic("as a test") },
		"aborts": func(*http.Request) { panic(http.ErrAbortHandler) },
		"begins": func(r *http.Request) {
			request.From(r.Context()).Release()
			if n := served(); n != 0 {
				t.Errorf("%d requests are served after a watch has begun", n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			within = do
			func() {
				defer func() { _ = recover() }()
				ask(s, "GET", "/apis/g/v1/things?watch=true", "bob")
			}()
			if n := served(); n != 0 {
				t.Errorf("%d requests are served at the end", n)
			}
		})
	}
}
