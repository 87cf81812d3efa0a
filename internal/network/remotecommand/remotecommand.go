// Package remotecommand serves exec and attach to WebSocket clients of a kubelet that speaks SPDY only.
//
// It translates the channels of a WebSocket (protocol v5.channel.k8s.io) to streams of SPDY. It knows neither pods nor
// containers.
package remotecommand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/network/socket"
	"github.com/anykind/anykind/internal/network/spdy"
)

// protocol is the WebSocket protocol that is translated. Its clients can close a channel.
const protocol = "v5.channel.k8s.io"

// versions are the protocols over SPDY, in the order of preference.
var versions = [...]string{"v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"}

// Streams are the requested streams of a command.
type Streams struct{ Stdin, Stdout, Stderr, TTY bool }

// A Command is an http.Handler for WebSockets to a command.
type Command struct {
	To        *url.URL
	Transport http.RoundTripper
	Streams   Streams
	Metrics   *Metrics
	Otherwise http.Handler // for requests of all other protocols
}

func (c Command) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !socket.Wanted(r) || !slices.Contains(socket.Protocols(r), protocol) {
		c.Otherwise.ServeHTTP(w, r)
		return
	}
	code := http.StatusBadRequest // of a handshake that fails
	websocket.Server{
		Handshake: func(c *websocket.Config, _ *http.Request) error {
			c.Protocol = []string{protocol}
			return nil
		},
		Handler: func(conn *websocket.Conn) { code = c.serve(r.Context(), conn) },
	}.ServeHTTP(socket.Writer(w), r)
	c.Metrics.command(code)
}

// serve serves one client, and returns the code of the outcome.
func (c Command) serve(ctx context.Context, conn *websocket.Conn) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := newChannels(ctx, conn, c.Streams)
	if client.send(c.first(), nil) != nil {
		return http.StatusBadRequest
	}
	var reader sync.WaitGroup
	reader.Go(func() {
		defer cancel() // the client disconnected
		client.read()
	})
	err := c.run(ctx, client)
	outcome, code := outcome(err)
	client.finish(outcome)
	reader.Wait()
	return code
}

// first returns the channel whose first, empty message tells the client that it is connected.
func (c Command) first() byte {
	switch {
	case c.Streams.Stdout:
		return stdout
	case c.Streams.Stderr:
		return stderr
	default:
		return failure
	}
}

// run connects the channels of a client to the streams of the command, until the command ends.
func (c Command) run(ctx context.Context, client *channels) error {
	raw, version, err := c.dial(ctx)
	if err != nil {
		return err
	}
	conn := spdy.New(raw)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()

	s, err := c.open(conn, version)
	if err != nil {
		return err
	}
	message := make(chan []byte, 1)
	go func() {
		const most = 1 << 20
		text, _ := io.ReadAll(io.LimitReader(s.failure, most)) // the end of the connection ends it
		message <- text
		_, _ = io.Copy(io.Discard, s.failure)
	}()
	if s.resize != nil {
		go client.resizes(s.resize)
	} else {
		client.sizes.Close()
	}
	if s.stdin != nil {
		go func() {
			defer s.stdin.Close()
			_, _ = io.Copy(s.stdin, client.stdin)
		}()
		go func() {
			_, _ = io.Copy(io.Discard, s.stdin) // until the server closes it
			client.stdin.Close()
		}()
	}
	var group sync.WaitGroup
	for channel, from := range map[byte]*spdy.Stream{stdout: s.stdout, stderr: s.stderr} {
		if from != nil {
			group.Go(func() {
				_, _ = io.Copy(channelWriter{client, channel}, from)
				_, _ = io.Copy(io.Discard, from) // a stream that is not read blocks the others
			})
		}
	}
	group.Wait()
	text := <-message
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return decode(version, text)
}

// opened are the streams of a command. Those that were not requested are nil.
type opened struct{ failure, stdin, stdout, stderr, resize *spdy.Stream }

// open opens the streams in the order that kubelets expect.
func (c Command) open(conn *spdy.Conn, version string) (opened, error) {
	var s opened
	for _, one := range []struct {
		wanted bool
		kind   string
		to     **spdy.Stream
	}{
		{true, corev1.StreamTypeError, &s.failure},
		{c.Streams.Stdin, corev1.StreamTypeStdin, &s.stdin},
		{c.Streams.Stdout, corev1.StreamTypeStdout, &s.stdout},
		{c.Streams.Stderr && !c.Streams.TTY, corev1.StreamTypeStderr, &s.stderr},
		{c.Streams.TTY && hasResize(version), corev1.StreamTypeResize, &s.resize},
	} {
		if !one.wanted {
			continue
		}
		var err error
		if *one.to, err = conn.Open(corev1.StreamType, one.kind); err != nil {
			return s, err
		}
	}
	return s, nil
}

// hasResize reports whether a protocol has a stream for the size of the terminal.
func hasResize(version string) bool { return slices.Contains(versions[:3], version) }

// dial upgrades a connection to the kubelet, and returns the protocol that it chose.
func (c Command) dial(ctx context.Context) (io.ReadWriteCloser, string, error) {
	const upgrade = "SPDY/3.1"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.To.String(), nil)
	if err != nil {
		return nil, "", err
	}
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {upgrade}, "X-Stream-Protocol-Version": versions[:]}
	client := http.Client{Transport: c.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("redirect not allowed")
	}}
	answer, err := client.Do(r)
	if err != nil {
		return nil, "", fmt.Errorf("error sending request: %w", err)
	}
	raw, ok := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !ok || !strings.EqualFold(answer.Header.Get("Upgrade"), upgrade) {
		defer answer.Body.Close()
		const most = 64 << 10
		text, err := io.ReadAll(io.LimitReader(answer.Body, most))
		if err != nil {
			return nil, "", errors.New("unable to upgrade connection: unable to read error from server response")
		}
		return nil, "", fmt.Errorf("unable to upgrade connection: %s", refusal(text))
	}
	return raw, answer.Header.Get("X-Stream-Protocol-Version"), nil
}

// refusal returns the message in the answer of a kubelet that refused the upgrade.
func refusal(text []byte) string {
	var s struct{ Message, Error string }
	_ = json.Unmarshal(text, &s) // most answers are plain text
	for _, message := range []string{s.Message, s.Error, string(text)} {
		if message = strings.TrimSpace(message); message != "" {
			return message
		}
	}
	return "empty server response"
}
