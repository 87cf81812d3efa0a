package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// run runs the containers of a pod at an address, and reports the pod as running once they are ready.
// It returns at the end of a process or of ctx.
func (n *Node) run(ctx context.Context, pod *corev1.Pod, address string) error {
	dir := filepath.Join(n.Dir, pod.Namespace, pod.Name)
	volumes, err := n.volumes(ctx, pod, dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	ended := make(chan error, len(pod.Spec.Containers))
	for _, c := range pod.Spec.Containers {
		if len(c.Command) > 0 || !strings.Contains(c.Image, "/agnhost:") {
			continue
		}
		args, err := forward(ctx, &group, c, address)
		if err != nil {
			return err
		}
		for i := range args {
			for _, m := range c.VolumeMounts {
				args[i] = strings.ReplaceAll(args[i], m.MountPath, volumes[m.Name])
			}
		}
		if err := process(ctx, &group, n.Agnhost, args, filepath.Join(dir, c.Name+".log"), ended); err != nil {
			return err
		}
		if err := ready(ctx, c, address, ended); err != nil {
			return fmt.Errorf("container %s: %w", c.Name, err)
		}
	}
	if err := n.say(ctx, pod, runs(pod, address)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

// volumes writes the Secrets of a pod into folders, and returns these by volume name.
func (n *Node) volumes(ctx context.Context, pod *corev1.Pod, dir string) (map[string]string, error) {
	folders := map[string]string{}
	for _, v := range pod.Spec.Volumes {
		folder := filepath.Join(dir, v.Name)
		folders[v.Name] = folder
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		if v.Secret == nil {
			continue
		}
		secret, err := n.Client.CoreV1().Secrets(pod.Namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		for name, content := range secret.Data {
			if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
				return nil, err
			}
		}
	}
	return folders, os.MkdirAll(dir, 0o755)
}

// process starts a program, and kills it when ctx ends.
func process(ctx context.Context, group *sync.WaitGroup, program string, args []string, log string, ended chan<- error) error {
	said, err := os.Create(log)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		said.Close()
		return err
	}
	group.Go(func() {
		defer said.Close()
		ended <- fmt.Errorf("%s ended: %w; see %s", strings.Join(args, " "), errors.Join(cmd.Wait()), log)
	})
	return nil
}

// forward listens at the ports of a container, and forwards connections to other ports: the processes
// of all pods share this machine. It returns the arguments of the container with those ports.
func forward(ctx context.Context, group *sync.WaitGroup, c corev1.Container, address string) ([]string, error) {
	args := append([]string(nil), c.Args...)
	for _, p := range c.Ports {
		to, err := free()
		if err != nil {
			return nil, err
		}
		for i := range args {
			if args[i] == fmt.Sprintf("--port=%d", p.ContainerPort) {
				args[i] = fmt.Sprintf("--port=%d", to)
			}
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(int(p.ContainerPort))))
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { listener.Close() })
		group.Go(func() {
			for {
				from, err := listener.Accept()
				if err != nil {
					return
				}
				group.Go(func() { pass(ctx, from, fmt.Sprintf("127.0.0.1:%d", to)) })
			}
		})
	}
	return args, nil
}

// pass copies data between a connection and an address, in both directions.
func pass(ctx context.Context, from net.Conn, address string) {
	defer from.Close()
	to, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	defer context.AfterFunc(ctx, func() { from.Close(); to.Close() })()
	back := make(chan struct{})
	go func() {
		defer close(back)
		io.Copy(from, to) //nolint:errcheck // either side may close the connection
		from.Close()
	}()
	io.Copy(to, from) //nolint:errcheck
	to.Close()
	<-back
}

// ready waits until the readiness probe of a container succeeds.
func ready(ctx context.Context, c corev1.Container, address string, ended <-chan error) error {
	if c.ReadinessProbe == nil || c.ReadinessProbe.HTTPGet == nil {
		return nil
	}
	get := c.ReadinessProbe.HTTPGet
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} // as kubelets probe
	url := fmt.Sprintf("%s://%s%s", strings.ToLower(string(get.Scheme)), net.JoinHostPort(address, get.Port.String()), get.Path)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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
		case <-again.C:
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func free() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
