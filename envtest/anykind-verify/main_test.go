package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// programVariable makes the test binary a controller: "early" has a bug, "late" has none, and "idle" writes nothing.
const programVariable = "VERIFY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if order := os.Getenv(programVariable); order != "" {
		fmt.Fprintln(os.Stderr, control(order))
		os.Exit(1)
	}
	log.SetLogger(logr.Discard())
	m.Run()
}

// control makes a Secret for each ConfigMap with the label mine, and says so in the ConfigMap: early is before it has the
// Secret.
func control(order string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	for ctx := context.Background(); ; <-time.After(10 * time.Millisecond) {
		var all corev1.ConfigMapList
		if err := c.List(ctx, &all, client.HasLabels{"mine"}); err != nil {
			continue
		}
		for _, m := range all.Items {
			if m.Data["ready"] != "" || order == "idle" {
				continue
			}
			m.Data = map[string]string{"ready": "yes"}
			make := func() error {
				return client.IgnoreAlreadyExists(c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}))
			}
			say := func() error { return c.Update(ctx, &m) }
			steps := []func() error{make, say}
			if order == "early" {
				steps = []func() error{say, make}
			}
			for _, step := range steps {
				if step() != nil {
					break
				}
			}
		}
	}
}

// writeMap writes a file with a ConfigMap for the controller.
func writeMap(t *testing.T) (file string) {
	file = filepath.Join(t.TempDir(), "map.yaml")
	yaml := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n  labels: {mine: 'yes'}\n"
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRun(t *testing.T) {
	file := writeMap(t)
	for order, found := range map[string]int{"early": 1, "late": 0} {
		t.Setenv(programVariable, order)
		var out, errs bytes.Buffer
		args := []string{"--faults=crash-after", "--plans=2", "--quiet=100ms", "--keep", "-f", file, "--", os.Args[0]}
		n, err := run(t.Context(), args, &out, &errs)
		if err != nil || n != found {
			t.Errorf("%s: %d findings, %v\n%s%s", order, n, err, &out, &errs)
		}
		if found > 0 && (!strings.Contains(out.String(), "Secret default/m is missing") || !strings.Contains(out.String(), " --keep -f "+file+" --plan=crash-after:1 -- ")) {
			t.Errorf("%s", &out)
		}
	}
}

// A plan whose write does not come is listed as such, and a program without writes is an error.
func TestNoEffect(t *testing.T) {
	file := writeMap(t)
	t.Setenv(programVariable, "late")
	var out, errs bytes.Buffer
	n, err := run(t.Context(), []string{"--plan=crash-after:9", "--quiet=100ms", "--keep", "-f", file, "--", os.Args[0]}, &out, &errs)
	if err != nil || n > 0 || !strings.Contains(errs.String(), "no effect: crash-after:9") || !strings.Contains(out.String(), "10 plans with a fault without effect") {
		t.Errorf("%d findings, %v\n%s%s", n, err, &out, &errs)
	}
	t.Setenv(programVariable, "idle")
	_, err = run(t.Context(), []string{"--plans=1", "--quiet=100ms", "-f", file, "--", os.Args[0]}, &out, &errs)
	if err == nil || !strings.Contains(err.Error(), "the program has written nothing") {
		t.Error(err)
	}
}

func TestConditions(t *testing.T) {
	file := writeMap(t)
	ready := `objects("v1", "ConfigMap").all(m, !has(m.data) || !has(m.data.ready) || objects("v1", "Secret").exists(s, s.metadata.name == m.metadata.name))`
	for _, tt := range []struct{ order, always, finally, found string }{
		{"late", ready, `objects("v1", "Secret").size() == 1 && objects("apps/v1beta1", "Gadget").size() == 0`, ""},
		{"late", ready, `objects("v1", "Secret").size() == 2`, "size() == 2: false"},
		{"early", ready, "true", ready + ": false"},
		{"late", `objects("v1", "Secret").all(s, s.data.size() == 0)`, "true", "no such key: data"},
	} {
		t.Setenv(programVariable, tt.order)
		var out, errs bytes.Buffer
		args := []string{"--plans=1", "--quiet=100ms", "--keep", "--always", tt.always, "--finally", tt.finally, "-f", file, "--", os.Args[0]}
		n, err := run(t.Context(), args, &out, &errs)
		noGadget := strings.Contains(errs.String(), "no object of Gadget (apps/v1beta1) existed in any state")
		if err != nil || n > 0 != (tt.found != "") || !strings.Contains(out.String(), tt.found) || noGadget != strings.Contains(tt.finally, "Gadget") {
			t.Errorf("%s, %s: %d findings, %v\n%s%s", tt.always, tt.finally, n, err, &out, &errs)
		}
	}
}

func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"empty.yaml": "---\n", "nameless.yaml": "apiVersion: v1\nkind: ConfigMap\n", "map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]string{
		"":                        "the command of the program is missing",
		"-- true":                 "a controller needs an object to act on",
		"-f missing.yaml -- true": "missing.yaml: no such file",
		"-f empty.yaml -- true":   "empty.yaml: it has no objects",
		"--inputs --samples no -f m.yaml -- true": "no: no such file",
		"--samples map.yaml -f map.yaml -- true":  "--samples needs --inputs",
		"--plan fail:0 -f map.yaml -- true":       `--plan: "fail:0" is no fault`,
		"-f nameless.yaml -- true":                "needs apiVersion and metadata.name",
		"--crds missing -f map.yaml -- true":      "--crds: stat missing: no such file",
		"--plan wrong -f map.yaml -- sleep 60":    `--plan: "wrong" is no fault`,
		"--always objects( -f map.yaml -- true":   "--always: ERROR: <input>:1:9: Syntax error",
		"--finally 'a' -f map.yaml -- true":       "--finally: 'a' is of type string, and must be bool",
		"-f map.yaml -- ./missing":                "no such file",
		"--plans x":                               "invalid argument",
		"--faults crash -f map.yaml -- true":      `"crash" is none of [conflict crash-after`,
	} {
		t.Chdir(dir)
		var out, errs bytes.Buffer
		if _, err := run(t.Context(), strings.Fields(args), &out, &errs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\n%s", args, err, &out)
		}
	}
}

func TestQuoteAll(t *testing.T) {
	if got, want := quoteAll([]string{"a-b", "", "c d", "it's"}), `a-b '' 'c d' 'it'\''s'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
