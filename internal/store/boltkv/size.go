package boltkv

import (
	"context"
	"os"
)

// Size implements kv.Sizer.
func (s *Store) Size(context.Context) (int64, error) {
	file, err := os.Stat(s.db.Path())
	if err != nil {
		return 0, err
	}
	return file.Size(), nil
}
