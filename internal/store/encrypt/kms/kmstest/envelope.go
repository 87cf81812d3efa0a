//lint:file-ignore SA1019 version 1 of the protocol is deprecated, and old data needs it

package kmstest

import (
	"bytes"
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	oldapi "k8s.io/kms/apis/v1beta1"
)

// registerOld serves a Plugin with version 1 of the protocol, too.
func registerOld(server *grpc.Server, p *Plugin) {
	oldapi.RegisterKeyManagementServiceServer(server, oldService{Plugin: p})
}

// oldService is a Plugin with version 1 of the protocol.
type oldService struct {
	oldapi.UnimplementedKeyManagementServiceServer
	*Plugin
}

func (s oldService) Version(ctx context.Context, _ *oldapi.VersionRequest) (*oldapi.VersionResponse, error) {
	return &oldapi.VersionResponse{Version: "v1beta1", RuntimeName: "kmstest", RuntimeVersion: "1.0.0"}, s.wait(ctx)
}

func (s oldService) Encrypt(ctx context.Context, r *oldapi.EncryptRequest) (*oldapi.EncryptResponse, error) {
	s.Encrypts.Add(1)
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &oldapi.EncryptResponse{Cipher: append([]byte(s.last+":"), s.keys[s.last].Seal(nil, nil, r.GetPlain(), nil)...)}, nil
}

func (s oldService) Decrypt(ctx context.Context, r *oldapi.DecryptRequest) (*oldapi.DecryptResponse, error) {
	s.Decrypts.Add(1)
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, sealed, _ := bytes.Cut(r.GetCipher(), []byte(":"))
	key := s.keys[string(id)]
	if key == nil {
		return nil, status.Errorf(codes.FailedPrecondition, "no key %q", id)
	}
	plain, err := key.Open(nil, nil, sealed, nil)
	return &oldapi.DecryptResponse{Plain: plain}, err
}
