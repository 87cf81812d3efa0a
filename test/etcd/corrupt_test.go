package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anykind/anykind/test/process"
)

// varying is the part of a message that depends on the decoder.
var varying = regexp.MustCompile(`object not decodable revision=\d+: [^"]*|"resourceVersion":"\d+"|"uid":"[^"]*"`)

// corrupt compares the answers about objects whose values in etcd are damaged.
func corrupt(t *testing.T, m *Member, kube, anykind process.API) {
	t.Helper()
	for _, resource := range []struct{ collection, key string }{
		{"/api/v1/namespaces/default/endpoints", "/registry/services/endpoints/default/"},
		{"/apis/before.example.com/v1/namespaces/default/things", "/registry/before.example.com/things/default/"},
	} {
		names := []string{"damaged-0", "damaged-1"}
		m.in(t, func(ctx context.Context, c *clientv3.Client) error {
			for _, name := range names {
				if _, err := c.Put(ctx, resource.key+name, "k8s\x00\x01damaged"); err != nil {
					return err
				}
			}
			return nil
		})
		const unsafe = `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`
		for _, r := range []struct{ method, path, body string }{
			{"GET", "/damaged-0", ""},
			{"GET", "?limit=500", ""},
			{"DELETE", "/damaged-0", ""},
			{"DELETE", "/damaged-0", `{"preconditions":{"uid":"u"}}`},
			{"DELETE", "/damaged-0", `{"ignoreStoreReadErrorWithClusterBreakingPotential":true,"dryRun":["All"]}`},
			{"DELETE", "/none", unsafe},
		} {
			var answers [2]string
			for i, api := range []process.API{kube, anykind} {
				answers[i] = answer(t, api, r.method, resource.collection+r.path, r.body)
			}
			if answers[0] != answers[1] {
				t.Errorf("%s %s%s %s\nkube-apiserver: %s\nanykind:        %s", r.method, resource.collection, r.path, r.body, answers[0], answers[1])
			}
		}
		var deletions [2]string
		for i, api := range []process.API{kube, anykind} {
			deletions[i] = strings.ReplaceAll(answer(t, api, "DELETE", resource.collection+"/"+names[i], unsafe), names[i], "NAME")
		}
		if deletions[0] != deletions[1] {
			t.Errorf("the deletion\nkube-apiserver: %s\nanykind:        %s", deletions[0], deletions[1])
		}
		same(t, kube, anykind, resource.collection+"?limit=500")
	}
}

// answer returns the answer to a request, without what differs by chance.
func answer(t *testing.T, api process.API, method, path, body string) string {
	t.Helper()
	var in any
	if body != "" {
		in = json.RawMessage(body)
	}
	var out json.RawMessage
	err := api.Do(t.Context(), method, path, in, &out)
	var refused *process.Refused
	if errors.As(err, &refused) {
		return varying.ReplaceAllString(refused.Body, "…")
	}
	if err != nil {
		t.Fatal(err)
	}
	return varying.ReplaceAllString(string(out), "…")
}
