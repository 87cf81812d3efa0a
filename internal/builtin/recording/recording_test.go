package recording

import (
	"slices"
	"strings"
	"testing"
)

const text = `v1 pods
	Pod namespaced
	operations
		/PLURAL get: list~KIND
		/PLURAL post: create~KIND
v1 services
	Service namespaced
	operations as v1 pods
`

func TestWriteAndRead(t *testing.T) {
	r, err := Read(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r[0].Operations, r[1].Operations) || len(r[1].Operations) != 2 {
		t.Errorf("services have %q", r[1].Operations)
	}
	var again strings.Builder
	if err := r.Write(&again, nil); err != nil || again.String() != text {
		t.Errorf("written is\n%s, %v", again.String(), err)
	}
	for _, wrong := range []string{"\tPod", "v1 pods\n\toperations as v1 nodes\n"} {
		if _, err := Read(wrong, nil); err == nil {
			t.Errorf("%q was read", wrong)
		}
	}
}

// A recording can refer to the operations of another one.
func TestWriteBeside(t *testing.T) {
	all, err := Read(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	var beside strings.Builder
	if err := all[1:].Write(&beside, all[:1]); err != nil || beside.String() != text[strings.Index(text, "v1 services"):] {
		t.Errorf("written is\n%s, %v", beside.String(), err)
	}
	if r, err := Read(beside.String(), all[:1]); err != nil || len(r) != 1 || len(r[0].Operations) != 2 {
		t.Errorf("read is %v, %v", r, err)
	}
}

func TestDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		change func(Recording) Recording
		want   []string
	}{
		"none":    {func(r Recording) Recording { return r }, nil},
		"missing": {func(r Recording) Recording { return r[:1] }, []string{"- v1 services"}},
		"fact": {func(r Recording) Recording {
			r[0].Facts[0] = "Pod cluster"
			return r
		}, []string{"- v1 pods: Pod namespaced", "+ v1 pods: Pod cluster"}},
		"operation": {func(r Recording) Recording {
			r[1].Operations = r[1].Operations[1:]
			return r
		}, []string{"- v1 services: /PLURAL get: list~KIND"}},
		"order and more": {func(r Recording) Recording {
			return Recording{r[1], {Subject: "v1 nodes"}, r[0]}
		}, []string{"+ v1 nodes", "- v1 pods comes before v1 services"}},
		"order": {func(r Recording) Recording { return Recording{r[1], r[0]} }, []string{"- v1 pods comes before v1 services"}},
	} {
		theirs, _ := Read(text, nil)
		ours, _ := Read(text, nil)
		if got := Differences(theirs, c.change(ours)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
