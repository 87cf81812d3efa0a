package etcdkv

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Timeout of a version request; a member that does not respond is not counted.
const versionTimeout = 2 * time.Second

// Supported returns an error if a member of etcd is too old. Before 3.4.31 and 3.5.13, etcd may report
// a watch progress that is too high. Before 3.4 it does not report progress on request, so a
// consistent read would have no end.
func (s *Store) Supported(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	versions := make([]string, len(s.options.Endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range s.options.Endpoints {
		asking.Go(func() {
			if status, err := s.client.Status(ctx, endpoint); err == nil {
				versions[i] = status.Version
			}
		})
	}
	asking.Wait()
	for i, version := range versions {
		if tooOld(version) {
			return fmt.Errorf("etcd at %s is %s, whose watch progress is unreliable: want 3.4.31, 3.5.13, or later",
				s.options.Endpoints[i], version)
		}
	}
	return nil
}

func tooOld(version string) bool {
	var major, minor, patch int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); n < 3 {
		return false // an unparsable version is not a release that is too old
	}
	switch {
	case major != 3:
		return major < 3
	case minor == 4:
		return patch < 31
	case minor == 5:
		return patch < 13
	}
	return minor < 4
}
