// Package kmstest is a KMS plugin for tests, with AES keys in memory. It has both versions of the protocol.
//
// It can rotate its key, lose keys, stop, and hang: the failures of a plugin that its clients must bear.
package kmstest

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"
)

// A Plugin is a KMS plugin on a socket.
type Plugin struct {
	socket string
	server *grpc.Server // nil while stopped
	ended  chan error

	mu   sync.Mutex
	keys map[string]cipher.AEAD // by ID
	last string                 // the ID of the key that encrypts
	hung chan struct{}          // calls wait for it; nil while they do not

	// Connections counts the open connections.
	Connections atomic.Int64
	// Statuses, Encrypts and Decrypts count the calls.
	Statuses, Encrypts, Decrypts atomic.Int64
}

// Start starts a Plugin with one key on a socket.
func Start(socket string) (*Plugin, error) {
	p := &Plugin{socket: socket, keys: map[string]cipher.AEAD{}}
	p.Rotate()
	return p, p.Resume()
}

// Endpoint returns the endpoint for an EncryptionConfiguration.
func (p *Plugin) Endpoint() string { return "unix://" + p.socket }

// KeyID returns the ID of the key that encrypts.
func (p *Plugin) KeyID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Rotate encrypts with a new key from now on.
func (p *Plugin) Rotate() {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	block, err := aes.NewCipher(secret)
	if err != nil {
		panic(err) // the size is right
	}
	key, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = fmt.Sprintf("key-%d", len(p.keys)+1)
	p.keys[p.last] = key
}

// Lose has the plugin reject values of a key, and Find ends that.
func (p *Plugin) Lose(id string) (find func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := p.keys[id]
	p.keys[id] = nil
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.keys[id] = key
	}
}

// Hang has calls wait until release is called, or their client leaves.
func (p *Plugin) Hang() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hung := make(chan struct{})
	p.hung = hung
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.hung = nil
		close(hung)
	}
}

// Stop ends the plugin with its connections, as if its process were killed.
func (p *Plugin) Stop() error {
	if p.server == nil {
		return nil
	}
	p.server.Stop()
	p.server = nil
	return <-p.ended
}

// Resume starts a stopped plugin again, with its keys.
func (p *Plugin) Resume() error {
	if err := os.Remove(p.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		return err
	}
	server, ended := grpc.NewServer(grpc.StatsHandler(connections{&p.Connections})), make(chan error, 1)
	kmsapi.RegisterKeyManagementServiceServer(server, service{Plugin: p})
	registerOld(server, p)
	p.server, p.ended = server, ended
	go func() { ended <- server.Serve(l) }()
	return nil
}

// connections counts connections.
type connections struct{ open *atomic.Int64 }

func (c connections) HandleConn(_ context.Context, s stats.ConnStats) {
	switch s.(type) {
	case *stats.ConnBegin:
		c.open.Add(1)
	case *stats.ConnEnd:
		c.open.Add(-1)
	}
}

func (connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (connections) HandleRPC(context.Context, stats.RPCStats)                         {}

// service has the API of a Plugin.
type service struct {
	kmsapi.UnimplementedKeyManagementServiceServer
	*Plugin
}

// annotation is the name of the annotation of each value.
const annotation = "version.kmstest.example.com"

// wait waits while the plugin hangs.
func (p *Plugin) wait(ctx context.Context) error {
	p.mu.Lock()
	hung := p.hung
	p.mu.Unlock()
	if hung == nil {
		return nil
	}
	select {
	case <-hung:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s service) Status(ctx context.Context, _ *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	s.Statuses.Add(1)
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return &kmsapi.StatusResponse{Version: "v2", Healthz: "ok", KeyId: s.KeyID()}, nil
}

func (s service) Encrypt(ctx context.Context, r *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	s.Encrypts.Add(1)
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &kmsapi.EncryptResponse{
		Ciphertext: s.keys[s.last].Seal(nil, nil, r.GetPlaintext(), nil), KeyId: s.last,
		Annotations: map[string][]byte{annotation: []byte("1")},
	}, nil
}

func (s service) Decrypt(ctx context.Context, r *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	s.Decrypts.Add(1)
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := s.keys[r.GetKeyId()]
	if key == nil || string(r.GetAnnotations()[annotation]) != "1" {
		return nil, status.Errorf(codes.FailedPrecondition, "no key %q", r.GetKeyId())
	}
	plain, err := key.Open(nil, nil, r.GetCiphertext(), nil)
	return &kmsapi.DecryptResponse{Plaintext: plain}, err
}
