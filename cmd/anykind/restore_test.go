package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Objects of a backup are applied to a running server, after a dry run that changes nothing.
func TestRestore(t *testing.T) {
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "nightly.db")
	s := serving(t, "--data-dir", data)
	kubeconfig := filepath.Join(data, "admin.kubeconfig")
	s.connect(t, kubeconfig)
	const maps = "/api/v1/namespaces/default/configmaps"
	s.ask(t, http.MethodPost, maps, `{"metadata":{"name":"lost"},"data":{"k":"old"}}`, http.StatusCreated)
	s.ask(t, http.MethodPost, maps, `{"metadata":{"name":"changed"},"data":{"k":"old"}}`, http.StatusCreated)
	s.ask(t, http.MethodPost, maps, `{"metadata":{"name":"same"},"data":{"k":"old"}}`, http.StatusCreated)
	run := func(code int, args ...string) string {
		t.Helper()
		cmd, stderr := command(t, append(args, "--kubeconfig", kubeconfig)...)
		out, _ := cmd.Output()
		if cmd.ProcessState.ExitCode() != code {
			t.Errorf("%v: exit code %d: %s%s", args, cmd.ProcessState.ExitCode(), out, stderr)
		}
		return string(out) + stderr.String()
	}
	run(0, "backup", file)
	s.ask(t, http.MethodDelete, maps+"/lost", "", http.StatusOK)
	s.ask(t, http.MethodPut, maps+"/changed", `{"metadata":{"name":"changed"},"data":{"k":"new"}}`, http.StatusOK)

	want := "configmaps/changed in default configured\nconfigmaps/lost in default created\nconfigmaps/same in default unchanged\n"
	args := []string{"restore", file, "cm/changed", "configmap/lost", "ConfigMap/same", "--namespace", "default"}
	if got := run(0, append(args, "--dry-run")...); got != strings.ReplaceAll(want, "\n", " (dry run)\n") {
		t.Error(got)
	}
	s.ask(t, http.MethodGet, maps+"/lost", "", http.StatusNotFound)
	if got := run(0, args...); got != want {
		t.Error(got)
	}
	for _, name := range []string{"lost", "changed", "same"} {
		if got := s.get(t, maps+"/"+name); !strings.Contains(got, `"k":"old"`) {
			t.Error(got)
		}
	}
	// All objects of kinds that no controller changes: those of the server itself are unchanged.
	if got := run(0, "restore", file, "configmaps", "clusterrolebindings"); !strings.Contains(got, "clusterrolebindings.rbac.authorization.k8s.io/cluster-admin unchanged\n") || strings.Contains(got, "configured") {
		t.Error(got)
	}
	for word, want := range map[string]string{
		"cm/other": "configmaps \"other\" not found", "what": `the file has no kind "what"`, "events": "",
	} {
		code := 1
		if want == "" {
			code = 0
		}
		if got := run(code, "restore", file, word, "-n", "default"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", word, got)
		}
	}
	if got := run(1, "restore", file, "cm/lost"); !strings.Contains(got, "name the namespace with --namespace") {
		t.Error(got)
	}
	s.end(t)
}

// Objects of a backup are printed without a server.
func TestGetFrom(t *testing.T) {
	dir := t.TempDir()
	s := serving(t, "--data-dir", dir)
	s.connect(t, filepath.Join(dir, "admin.kubeconfig"))
	s.ask(t, http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"a"},"data":{"k":"v"}}`, http.StatusCreated)
	s.ask(t, http.MethodPost, "/api/v1/namespaces/default/podtemplates",
		`{"metadata":{"name":"p"},"template":{"spec":{"terminationGracePeriodSeconds":9007199254740993,"containers":[{"name":"c","image":"i"}]}}}`, http.StatusCreated)
	s.end(t)
	for args, want := range map[string]string{
		"cm/a -n default":                   "NAME   DATA   AGE\na      1 ",
		"podtemplate/p -n default -o yaml":  "terminationGracePeriodSeconds: 9007199254740993\n",
		"cm":                                "NAMESPACE         NAME ",
		"cm/a -n default -o name":           "configmaps/a in default\n",
		"cm/a -n default -o yaml":           "apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n",
		"cm/a -n default -o json":           "{\n    \"apiVersion\": \"v1\",",
		"cm/b -n default":                   "anykind: the server says: configmaps \"b\" not found",
		"cm -o what":                        `--output is "what"; want table, yaml, json, name`,
		"ns/default ns/kube-system -o yaml": "\n---\napiVersion: v1\nkind: Namespace\n",
	} {
		cmd, stderr := command(t, append([]string{"get", "--from", dir}, strings.Fields(args)...)...)
		out, _ := cmd.Output()
		if got := string(out) + stderr.String(); !strings.Contains(got, want) {
			t.Errorf("get %s: %s", args, got)
		}
	}
}
