package crash

import (
	"fmt"
	"sync/atomic"
)

// A counter bounds the value of the shared object: every acknowledged increment counts, and any of
// those without a response may count.
type counter struct{ sure, open atomic.Int64 }

// verify checks the stored value.
func (c *counter) verify(stored int64) error {
	least, most := c.sure.Load(), c.sure.Load()+c.open.Load()
	if stored < least || stored > most {
		return fmt.Errorf("the shared count is %d: %d increments were acknowledged, %d had no answer", stored, least, most-least)
	}
	c.sure.Store(stored)
	c.open.Store(0)
	return nil
}
