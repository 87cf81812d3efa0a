package etcd

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// nameRounds is the number of rounds, each with concurrent requests for one name.
var nameRounds = flag.Int("name-rounds", 40, "number of concurrent creates of one kind on two servers")

// kindOf returns a CustomResourceDefinition whose kind differs from its plural.
func kindOf(plural, group, kind string) *unstructured.Unstructured {
	crd, _ := definition(0)
	crd.SetName(plural + "." + group)
	for field, value := range map[string]any{
		"group": group, "names": map[string]any{"plural": plural, "singular": plural, "kind": kind, "listKind": kind + "List"},
	} {
		crd.Object["spec"].(map[string]any)[field] = value
	}
	return crd
}

// condition returns the status of a condition of a definition, "" without the condition or the
// definition.
func condition(t *testing.T, server dynamic.Interface, name, condition string) string {
	t.Helper()
	crd, err := server.Resource(crds).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == condition {
			return c["status"].(string)
		}
	}
	return ""
}

// Two definitions claim one kind at the same moment through two servers: one gets it. When that one is
// deleted, the other gets it. Both servers report it.
func TestANameIsGivenOnceByTwoServers(t *testing.T) {
	url := Start(t)
	servers := []dynamic.Interface{serve(t, url), serve(t, url)}
	ctx := t.Context()
	for round := range *nameRounds {
		// Half of them conflict in one group with other definitions.
		group := "example.com"
		if round%2 == 1 {
			group = fmt.Sprintf("g%d.example.com", round)
		}
		kind := fmt.Sprintf("Gear%d", round)
		names := make([]string, len(servers))
		var all sync.WaitGroup
		for i, server := range servers {
			crd := kindOf(fmt.Sprintf("gears%d-%d", round, i), group, kind)
			names[i] = crd.GetName()
			all.Go(func() {
				if _, err := server.Resource(crds).Create(ctx, crd, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		var got [2]string // for each server
		for i, server := range servers {
			got[i] = condition(t, server, names[0], "NamesAccepted") + condition(t, server, names[1], "NamesAccepted")
		}
		if got[0] != got[1] || got[0] != "TrueFalse" && got[0] != "FalseTrue" {
			t.Fatalf("round %d: NamesAccepted of the two are %s by one server, %s by the other", round, got[0], got[1])
		}
		if round%4 > 1 {
			continue
		}
		won, lost := names[0], names[1]
		if got[0] == "FalseTrue" {
			won, lost = lost, won
		}
		if err := servers[round%2].Resource(crds).Delete(ctx, won, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, server := range servers {
			eventually(t, func(context.Context) error {
				if a, e := condition(t, server, lost, "NamesAccepted"), condition(t, server, lost, "Established"); a+e != "TrueTrue" {
					return fmt.Errorf("%s: NamesAccepted is %s, Established %s", lost, a, e)
				}
				return nil
			})
		}
	}
}

// The keys that servers share for names are outside of served prefixes, and are deleted with the last
// definition of a group.
func TestMarksOfNamesGoWithTheLastDefinition(t *testing.T) {
	url := Start(t)
	server := serve(t, url)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	keys := func() (keys []string) {
		for _, found := range must[*clientv3.GetResponse](t)(client.Get(t.Context(), "/registry/.", clientv3.WithPrefix())).Kvs {
			keys = append(keys, string(found.Key))
		}
		return keys
	}
	for i := range 2 {
		must[*unstructured.Unstructured](t)(server.Resource(crds).Create(t.Context(), kindOf(fmt.Sprintf("gears%d", i), "example.com", fmt.Sprintf("Gear%d", i)), metav1.CreateOptions{}))
	}
	if got := fmt.Sprint(keys()); got != "[/registry/.anykind/names/example.com]" {
		t.Errorf("two definitions of a group leave %s", got)
	}
	for i := range 2 {
		if err := server.Resource(crds).Delete(t.Context(), fmt.Sprintf("gears%d.example.com", i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func(context.Context) error {
		if left := keys(); len(left) > 0 {
			return fmt.Errorf("%v is left", left)
		}
		return nil
	})
}
