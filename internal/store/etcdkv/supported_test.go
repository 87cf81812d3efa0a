package etcdkv

import (
	"context"
	"net"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// An oldMember is a member of etcd that only serves its version.
type oldMember struct {
	pb.UnimplementedMaintenanceServer
	version string
}

func (m *oldMember) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Version: m.version}, nil
}

func startOldMember(t *testing.T, version string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterMaintenanceServer(server, &oldMember{version: version})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-ended })
	return "http://" + l.Addr().String()
}

// One member that is too old is enough: a watch may be at any of them.
func TestEtcdThatIsTooOld(t *testing.T) {
	s, err := Open(Options{
		Endpoints: []string{startOldMember(t, "3.6.1"), startOldMember(t, "3.3.27")},
		Root:      "/registry/", Prefix: "/registry/",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Supported(t.Context()); err == nil || !strings.Contains(err.Error(), "is 3.3.27") {
		t.Errorf("got %v", err)
	}
}

func TestVersionsThatAreTooOld(t *testing.T) {
	for version, want := range map[string]bool{
		"2.3.8": true, "3.2.0": true, "3.3.27": true, "3.4.30": true, "3.4.31": false, "3.5.0": true, "3.5.12": true, "3.5.13": false,
		"3.6.0-rc.1": false, "3.7.0": false, "4.0.0": false, "unknown": false, "": false,
	} {
		if got := tooOld(version); got != want {
			t.Errorf("%q is too old: %v, want %v", version, got, want)
		}
	}
}
