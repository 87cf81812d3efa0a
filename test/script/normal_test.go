package script

import "testing"

func TestNormalTakesOutWhatDiffers(t *testing.T) {
	for _, tt := range []struct{ name, one, other string }{
		{"ages at the end", "NAME   AGE\na      6s\n", "NAME   AGE\na      3m20s\n"},
		{"ages in the middle", "AGE    NAME\n6s     a\n", "AGE    NAME\n3m20s  a\n"},
		{"uids", "uid: 9423255b-4600-11e7-af6a-28d2447dc82b", "uid: 9aab1d66-628e-41bb-a422-57b8b3b1f5a9"},
		{"timestamps", `creationTimestamp: "2021-06-20T07:35:27Z"`, "creationTimestamp: 2017-05-31T12:56:35Z"},
		{"revisions in YAML", `resourceVersion: "285"`, `resourceVersion: "1326"`},
		{"revisions in JSON", `"resourceVersion":"285"`, `"resourceVersion":"1326"`},
		{"revisions as described", "  Resource Version:  7", "  Resource Version:  294"},
		{"addresses", "https://127.0.0.1:6443/api", "https://localhost:37113/api"},
		{"addresses in discovery", `"serverAddress": "10.0.2.15:8443"`, `"serverAddress": "127.0.0.1:6443"`},
		{"the end of the last line", "a: 1", "a: 1\n"},
	} {
		if a, b := Normal(tt.one), Normal(tt.other); a != b {
			t.Errorf("%s: %q and %q", tt.name, a, b)
		}
	}
}

func TestNormalLeavesTheRest(t *testing.T) {
	for _, tt := range []struct{ name, one, other string }{
		{"an age and no age", "a      6s\n", "a      \n"},
		{"an age and a name", "a      6s\n", "a      6t\n"},
		{"no revision", `resourceVersion: "285"`, `resourceVersion: ""`},
		{"generations", "generation: 1", "generation: 2"},
		{"a line more", "a\n", "a\nb\n"},
		{"indentation", "a:\n  b: 1\n", "a:\n b: 1\n"},
	} {
		if a, b := Normal(tt.one), Normal(tt.other); a == b {
			t.Errorf("%s: both are %q", tt.name, a)
		}
	}
}
