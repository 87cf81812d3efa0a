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
	size := file.Size()
	for i := range journalFiles {
		if file, err := os.Stat(journalName(s.db.Path(), i)); err == nil {
			size += file.Size()
		}
	}
	return size, nil
}
