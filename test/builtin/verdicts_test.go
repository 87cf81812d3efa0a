package builtin

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/test/verdict"
)

var (
	reference = flag.String("reference", "", "compare with a kube-apiserver that is started if it is \"start\"")
	verdicts  = flag.Int("verdicts", 5000, "about the number of verdicts to compare with -reference")
)

// Mutated objects of the corpus get the same verdict offline as from a kube-apiserver, as creates and
// as updates of the stored object.
func TestVerdictsOfKubeAPIServer(t *testing.T) {
	r := verdict.StartReference(t, *reference, "verdicts.txt", "--allow-privileged", "--runtime-config=api/all=true")
	kinds, _ := chosen(t, NewServer(t, nil))
	corpus := readCorpus(t)
	for n, k := range kinds {
		objects := corpus[k.ID()]
		t.Run(k.ID(), func(t *testing.T) {
			for i, o := range objects {
				each := max(1, *verdicts/2/len(kinds)/len(objects))
				k.verdicts(t, r, o, rand.New(rand.NewPCG(*seedFlag, uint64(n)<<20|uint64(i))), each)
			}
		})
	}
	r.Report(t)
}

// verdicts compares the verdicts on n mutations of an object, as creates and as updates, unless the server
// has an object of that name.
func (k *Kind) verdicts(t *testing.T, r *verdict.Reference, o Object, random *rand.Rand, n int) {
	t.Helper()
	there, err := r.Ask(t.Context(), check.Question{Method: http.MethodGet, Path: k.path(nameOf(o), "")})
	if err != nil {
		t.Fatal(err)
	}
	if there.Code == http.StatusOK {
		return // an object of the server itself
	}
	dir := t.TempDir()
	mutations := k.Mutations(o, 2)
	random.Shuffle(len(mutations), func(a, b int) { mutations[a], mutations[b] = mutations[b], mutations[a] })
	for i := range min(n, len(mutations)) {
		if changed := mutations[i].Apply(o); changed != nil {
			writeObject(t, filepath.Join(dir, "changed", fmt.Sprintf("%05d.json", i)), changed)
		}
	}
	changed := []string{filepath.Join(dir, "changed")}
	options := check.Options{RuntimeConfig: builtin.RuntimeConfig{"api/all": "true"}}
	r.Add(verdict.CompareWith(t, r.Server, changed, options))
	stored := filepath.Join(dir, "stored", "object.json")
	writeObject(t, stored, o)
	var kept []byte // the object as the server has stored it
	storing := r.Server
	storing.Ask = func(ctx context.Context, q check.Question) (check.Answer, error) {
		a, err := r.Ask(ctx, q)
		if err == nil && a.Code < http.StatusBadRequest {
			q.Path = strings.Replace(q.Path, "dryRun=All", "", 1)
			if stored, err := r.Ask(ctx, q); err == nil && stored.Code == http.StatusCreated {
				kept = stored.Body
			}
		}
		return a, err
	}
	r.Add(verdict.CompareWith(t, storing, []string{stored}, options))
	if kept == nil {
		return
	}
	defer k.remove(t, r.Server, nameOf(o))
	verdict.WriteFile(t, stored, kept)
	options.Old = []string{stored}
	r.Add(verdict.CompareWith(t, r.Server, changed, options))
}

// remove deletes an object. Other kinds, quotas and limits would count it.
func (k *Kind) remove(t *testing.T, server verdict.Server, name string) {
	t.Helper()
	for _, q := range []check.Question{
		{Method: http.MethodPatch, Path: k.path(name, ""), ContentType: "application/merge-patch+json", Body: []byte(`{"metadata":{"finalizers":null}}`)},
		{Method: http.MethodDelete, Path: k.path(name, "") + "?gracePeriodSeconds=0"},
	} {
		if _, err := server.Ask(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
}

func writeObject(t *testing.T, file string, o Object) {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	verdict.WriteFile(t, file, data)
}
