package kms

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apiserver/pkg/apis/apiserver"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/util"
)

// reconnect is the longest pause between attempts to connect. With gRPC's default of two minutes, a plugin
// would be back long before its client.
const reconnect = 3 * time.Second

// A client calls a plugin on its socket. Calls wait until it listens.
type client struct {
	connection *grpc.ClientConn
	api        kmsapi.KeyManagementServiceClient
	timeout    time.Duration
}

// dial returns a client. It connects with the first call.
func dial(c *apiserver.KMSConfiguration, m *Metrics) (*client, error) {
	connection, err := connect(c, m.observe(c.Name))
	if err != nil {
		return nil, err
	}
	return &client{connection: connection, api: kmsapi.NewKeyManagementServiceClient(connection), timeout: c.Timeout.Duration}, nil
}

// connect returns a connection that is made with the first call.
func connect(c *apiserver.KMSConfiguration, each grpc.UnaryClientInterceptor) (*grpc.ClientConn, error) {
	socket, err := util.ParseEndpoint(c.Endpoint)
	if err != nil {
		return nil, err
	}
	retry := backoff.DefaultConfig
	retry.BaseDelay, retry.MaxDelay = reconnect/10, reconnect
	return grpc.NewClient("passthrough:///"+socket,
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // access is limited by the permissions of the socket
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: c.Timeout.Duration}),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}),
		grpc.WithUnaryInterceptor(each))
}

func (c *client) close() error { return c.connection.Close() }

func (c *client) status(ctx context.Context) (status, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := c.api.Status(ctx, &kmsapi.StatusRequest{})
	return status{answer.GetVersion(), answer.GetHealthz(), answer.GetKeyId()}, err
}

func (c *client) encrypt(ctx context.Context, uid string, plain []byte) (source, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := c.api.Encrypt(ctx, &kmsapi.EncryptRequest{Plaintext: plain, Uid: uid})
	return source{encrypted: answer.GetCiphertext(), keyID: answer.GetKeyId(), annotations: answer.GetAnnotations()}, err
}

func (c *client) decrypt(ctx context.Context, uid string, s *source) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := c.api.Decrypt(ctx, &kmsapi.DecryptRequest{Ciphertext: s.encrypted, Uid: uid, KeyId: s.keyID, Annotations: s.annotations})
	return answer.GetPlaintext(), err
}
