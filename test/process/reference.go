package process

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A Reference is a running kube-apiserver with an etcd of its own.
type Reference struct {
	Kubeconfig string // with the credentials of an administrator

	programs []*exec.Cmd
	logs     bytes.Buffer // output of both, interleaved
}

// StartReference starts the programs with their data in a folder and additional flags for the server,
// and waits until it is ready. The end of ctx kills them.
func StartReference(ctx context.Context, kubeAPIServer, etcd, dir string, flags ...string) (*Reference, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	key, err := serviceAccountKey()
	if err != nil {
		return nil, err
	}
	r := &Reference{Kubeconfig: filepath.Join(dir, "kubeconfig")}
	store, peer, server := "http://"+ports[0], "http://"+ports[1], "https://"+ports[2]
	_, port, _ := net.SplitHostPort(ports[2])
	keyFile, tokens := filepath.Join(dir, "service-account.key"), filepath.Join(dir, "tokens.csv")
	for name, content := range map[string]string{
		keyFile: string(key), tokens: "admin-token,admin,admin,system:masters\n", r.Kubeconfig: fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: reference, cluster: {server: "%s", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: admin-token}}]
contexts: [{name: reference, context: {cluster: reference, user: admin}}]
current-context: reference
`, server),
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	for _, command := range [][]string{
		{etcd, "--data-dir", filepath.Join(dir, "etcd"), "--log-level", "error",
			"--listen-client-urls", store, "--advertise-client-urls", store,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer},
		append([]string{kubeAPIServer, "--etcd-servers", store, "--bind-address", "127.0.0.1", "--secure-port", port,
			"--cert-dir", filepath.Join(dir, "certificates"), "--token-auth-file", tokens, "--authorization-mode", "RBAC",
			"--service-account-issuer", "https://localhost", "--service-account-key-file", keyFile,
			"--service-account-signing-key-file", keyFile, "--service-cluster-ip-range", "10.0.0.0/24"}, flags...),
	} {
		program := exec.CommandContext(ctx, command[0], command[1:]...)
		program.Stdout, program.Stderr = nil, &r.logs
		if err := program.Start(); err != nil {
			r.Kill()
			return nil, err
		}
		r.programs = append(r.programs, program)
	}
	if err := r.ready(ctx, server); err != nil {
		r.Kill()
		return nil, fmt.Errorf("%w; the reference wrote\n%s", err, r.logs.String())
	}
	return r, nil
}

// ready waits until the server is ready.
func (r *Reference) ready(ctx context.Context, server string) error {
	client, err := Client(r.Kubeconfig)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the reference was not ready: %w", ctx.Err())
		}
	}
}

// PID is the process ID of kube-apiserver.
func (r *Reference) PID() int { return r.programs[len(r.programs)-1].Process.Pid }

// Kill kills both programs.
func (r *Reference) Kill() {
	for _, program := range r.programs {
		program.Process.Kill() // fails only after the end of the process
		program.Wait()
	}
}

func serviceAccountKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

// freePorts returns free addresses of this machine.
func freePorts(n int) ([]string, error) {
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		out = append(out, l.Addr().String())
	}
	return out, nil
}
