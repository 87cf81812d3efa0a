package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/network/kubeconfig"
)

// A user is made while the server runs, by the words of its greeting, and is who they say.
func TestUser(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	s := serving(t, "--kubeconfig", elsewhere)
	words, found := strings.CutPrefix(s.greeting[2], "to add a user: anykind user NAME ")
	if !found {
		t.Fatalf("it said %q", s.greeting[2])
	}
	out, err := user(t, s, "jane@example.com", append(strings.Fields(words), "--group", "devs", "--group", "ops")...)
	file := filepath.Join(s.Dir, "anykind-data", "users", "jane@example.com.kubeconfig")
	if err != nil || !strings.HasPrefix(out, "user jane@example.com in devs, ops, certificate valid until 2") ||
		!strings.HasSuffix(out, "\nto use kubectl as jane@example.com: kubectl --kubeconfig "+file+" --context jane@example.com@anykind\n") {
		t.Errorf("%v, said %s", err, out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if got := whoami(t, file, ""); !strings.Contains(got, `"username":"jane@example.com"`) || !strings.Contains(got, `"devs"`) || !strings.Contains(got, `"ops"`) {
		t.Errorf("the server says that it is %s", got)
	}

	// Another one in the same file has a context there, which stays the administrator's.
	if out, err := user(t, s, "joe", append(strings.Fields(words), "--kubeconfig", elsewhere)...); err != nil {
		t.Errorf("%v, said %s", err, out)
	}
	for context, name := range map[string]string{"": "kubernetes-admin", "joe@anykind": "joe"} {
		if got := whoami(t, elsewhere, context); !strings.Contains(got, `"username":"`+name+`"`) {
			t.Errorf("in context %q, the server says that it is %s", context, got)
		}
	}
	if out, err := user(t, s, "joe"); err == nil || !strings.Contains(out, "name the file with --admin-kubeconfig") {
		t.Errorf("%v, said %s", err, out)
	}
}

func TestUserWithoutName(t *testing.T) {
	s := serving(t, "--in-memory")
	if out, err := user(t, s, ""); err == nil || out != "anykind: the user name is empty\n" {
		t.Errorf("%v, said %s", err, out)
	}
	// Objects in memory make no difference: certificates are kept.
	if out, err := user(t, s, "https://issuer.example/#jane"); err != nil || !strings.Contains(out, "/users/https:%2F%2Fissuer.example%2F%23jane.kubeconfig ") {
		t.Errorf("%v, said %s", err, out)
	}
}

// user runs anykind user in the folder of a server.
func user(t *testing.T, s *process, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"user", name}, args...)...)
	cmd.Env, cmd.Dir = s.Env, s.Dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// whoami returns what the server says of who asks it.
func whoami(t *testing.T, file, context string) string {
	t.Helper()
	config, err := kubeconfig.Find(kubeconfig.Options{Files: []string{file}, Context: context})
	if err != nil {
		t.Fatal(err)
	}
	client := config.Client()
	defer client.CloseIdleConnections()
	body := strings.NewReader(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`)
	got, err := client.Post(config.URL+"/apis/authentication.k8s.io/v1/selfsubjectreviews", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	var said strings.Builder
	if err := got.Write(&said); err != nil {
		t.Fatal(err)
	}
	return said.String()
}
