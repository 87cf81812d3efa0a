package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/clientcmd/api/latest"

	"github.com/anykind/anykind/internal/object/kubernetes"
)

// The tests run this program again as the command.
const asCommand = "ANYKIND_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func command(t *testing.T, args ...string) (cmd *exec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Dir = t.TempDir()
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	return cmd, stderr
}

// An invocation is a command with its arguments and what it reads, the code it is to end with, and
// parts of what it is to write.
type invocation struct {
	name, input    string
	args           []string
	code           int
	stdout, stderr string
}

// check runs the command in a folder with files, and returns what it wrote.
func (v invocation) check(t *testing.T, files map[string]string, words ...string) (stdout string) {
	t.Helper()
	cmd, stderr := command(t, append(words, v.args...)...)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(cmd.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Stdin = strings.NewReader(v.input)
	out, err := cmd.Output()
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	if code != v.code || !strings.Contains(string(out), v.stdout) || !strings.Contains(stderr.String(), v.stderr) {
		t.Errorf("exit code %d, want %d\n%s%s", code, v.code, out, stderr)
	}
	return string(out)
}

// A process is a running anykind serve.
type process struct {
	*exec.Cmd
	stderr   *bytes.Buffer
	greeting []string
	address  string
	client   *http.Client
}

func serving(t *testing.T, args ...string) *process {
	t.Helper()
	s := &process{}
	s.Cmd, s.stderr = command(t, append([]string{"serve", "--secure-port=0"}, args...)...)
	stdout, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Process.Kill() })
	lines := bufio.NewScanner(stdout)
	for len(s.greeting) < 4 && lines.Scan() {
		s.greeting = append(s.greeting, lines.Text())
	}
	if len(s.greeting) < 4 {
		t.Fatalf("it said %q and %s", s.greeting, s.stderr)
	}
	s.address = s.greeting[0][strings.LastIndex(s.greeting[0], "/")+1:]
	return s
}

// connect makes s.client the administrator's.
func (s *process) connect(t *testing.T, kubeconfig string) {
	t.Helper()
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config, err := runtime.Decode(latest.Codec, data)
	if err != nil {
		t.Fatal(err)
	}
	c := config.(*api.Config)
	here := c.Contexts[c.CurrentContext]
	user := c.AuthInfos[here.AuthInfo]
	pair, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.Clusters[here.Cluster].CertificateAuthorityData)
	s.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}},
		ForceAttemptHTTP2: true,
	}}
	t.Cleanup(s.client.CloseIdleConnections)
}

// half sends a request whose body does not end before the writer is closed, and
// returns when the server has begun to work on it.
func (s *process) half(t *testing.T) (*io.PipeWriter, chan int) {
	t.Helper()
	body, rest := io.Pipe()
	codes := make(chan int, 1)
	go func() {
		answer, err := s.client.Post("https://"+s.address+"/api/v1/namespaces/default/configmaps", "application/json", body)
		if err != nil {
			codes <- 0
			return
		}
		answer.Body.Close()
		codes <- answer.StatusCode
	}()
	if _, err := io.WriteString(rest, `{"apiVersion":"v1","kind":"ConfigMap",`); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(s.get(t, "/metrics"), `apiserver_current_inflight_requests{request_kind="mutating"} 1`) {
	}
	return rest, codes
}

func (s *process) get(t *testing.T, path string) string {
	t.Helper()
	answer, err := s.client.Get("https://" + s.address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, _ := io.ReadAll(answer.Body)
	return string(data)
}

// signal sends one and waits until the port is closed.
func (s *process) signal(t *testing.T) {
	t.Helper()
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			return
		}
		c.Close()
	}
}

func TestServe(t *testing.T) {
	s := serving(t)
	kubeconfig := filepath.Join(s.Dir, "anykind-data", "admin.kubeconfig")
	for i, want := range []string{
		`^anykind \S+, Kubernetes 1\.37, listens on https://127\.0\.0\.1:\d+$`,
		`^to use it: export KUBECONFIG=` + regexp.QuoteMeta(kubeconfig) + `$`,
		`^to add a user: anykind user NAME$`,
		`^started in \d+ ms$`,
	} {
		if !regexp.MustCompile(want).MatchString(s.greeting[i]) {
			t.Errorf("line %d: %s", i+1, s.greeting[i])
		}
	}
	if info, err := os.Stat(kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v %v", info, err)
	}
	s.connect(t, kubeconfig)
	if got := s.get(t, "/readyz"); got != "ok" {
		t.Errorf("/readyz: %s", got)
	}
	s.signal(t)
	if err := s.Wait(); err != nil || s.stderr.Len() > 0 {
		t.Errorf("stopped with %v, %s", err, s.stderr)
	}
}

// A write that has begun is answered before the server is gone.
func TestStopLetsWritesFinish(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "admin")
	s := serving(t, "--kubeconfig", kubeconfig)
	s.connect(t, kubeconfig)
	rest, codes := s.half(t)
	s.signal(t)
	if _, err := io.WriteString(rest, `"metadata":{"name":"late"}}`); err != nil {
		t.Fatal(err)
	}
	rest.Close()
	if code := <-codes; code != http.StatusCreated {
		t.Errorf("the write was answered with %d", code)
	}
	if err := s.Wait(); err != nil || s.stderr.Len() > 0 {
		t.Errorf("stopped with %v, %s", err, s.stderr)
	}
}

func TestSecondSignalStopsAtOnce(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "admin")
	s := serving(t, "--kubeconfig", kubeconfig, "--in-memory")
	s.connect(t, kubeconfig)
	rest, codes := s.half(t)
	s.signal(t)
	s.signal(t)
	var exit *exec.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("stopped with %v", err)
	}
	rest.Close()
	<-codes
}

func TestErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().String()[strings.LastIndex(taken.Addr().String(), ":")+1:]
	tests := []struct {
		args string
		code int
		want string
	}{
		{"serve --secure-port " + port, exitFailed, "another program is using the port"},
		{"serve --tls-cert-file x --tls-private-key-file y", exitFailed, "open x: no such file"},
		{"serve --nope", exitUsage, "unknown flag: --nope"},
		{"serve --secure-port 65536", exitUsage, "value out of range"},
		{"serve --feature-gates Nope=true", exitUsage, "unrecognized feature gate: Nope"},
		{"serve --feature-gates CBORServingAndStorage", exitUsage, "missing bool value for CBORServingAndStorage"},
		{"serve --feature-gates CBORServingAndStorage=on", exitUsage, "invalid value of CBORServingAndStorage=on"},
		{"serve here", exitUsage, `takes no arguments, but was given "here"; see anykind serve --help`},
		{"user", exitUsage, "exactly one NAME is required, got 0; see anykind user --help"},
		{"user jane joe", exitUsage, "exactly one NAME is required, got 2"},
		{"user jane", exitFailed, "no server was started with the data directory anykind-data: name the directory with --data-dir"},
		{"user jane --group=", exitFailed, "a group name is empty"},
		{"user jane --duration 0s", exitFailed, "--duration is 0s: want at least 1s"},
		{"user anykind-admin", exitFailed, `"anykind-admin" is reserved for the administrator: choose another name`},
		{"version -o table", exitUsage, "--output must be 'yaml' or 'json'"},
		{"srve", exitUsage, `unknown command "srve"`},
	}
	for _, test := range tests {
		cmd, stderr := command(t, strings.Fields(test.args)...)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != test.code || len(out) > 0 {
			t.Errorf("%s: %v, said %s", test.args, err, out)
		}
		if got := stderr.String(); !strings.HasPrefix(got, "anykind: ") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %s", test.args, got)
		}
		if entries, err := os.ReadDir(cmd.Dir); err != nil || len(entries) > 0 {
			t.Errorf("%s left %v, %v", test.args, entries, err)
		}
	}
}

func TestVersionAndHelp(t *testing.T) {
	for args, want := range map[string]string{
		"version":         "Kubernetes " + kubernetes.Version,
		"version -o json": `"gitVersion": "` + kubernetes.Version,
		"version -o yaml": "\ngitVersion: " + kubernetes.Version,
		"--help":          "in one process",
		"serve --help":    "--token-auth-file",
	} {
		cmd, _ := command(t, strings.Fields(args)...)
		if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s", args, err, out)
		}
	}
}

// --server may stand alone, for the server that is asked without it, too.
func TestBareServer(t *testing.T) {
	for args, want := range map[string]string{
		"crd try new.yaml --server":                   "crd try new.yaml",
		"crd try --server --context prod new.yaml":    "crd try --context prod new.yaml",
		"crd try --server https://127.0.0.1 new.yaml": "crd try --server https://127.0.0.1 new.yaml",
	} {
		if got := strings.Join(withoutBareServer(strings.Fields(args)), " "); got != want {
			t.Errorf("%s is read as %s, want %s", args, got, want)
		}
	}
}
