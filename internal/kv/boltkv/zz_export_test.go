package boltkv

import (
	"fmt"

	bolt "go.etcd.io/bbolt"
)

func (s *Store) Debug() string {
	st := s.stateNow()
	var size int64
	_ = s.db.View(func(tx *bolt.Tx) error { size = tx.Size(); return nil })
	return fmt.Sprintf("%+v free %d pages pending %d hwm %d allocated %d paused %v", st, s.db.Stats().FreePageN, s.db.Stats().PendingPageN, size/4096, s.space.allocated/4096, s.paused)
}
