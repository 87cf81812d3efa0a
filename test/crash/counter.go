package crash

import (
	"fmt"
	"sync/atomic"
)

// A counter says what the shared object must have come to: every increment that
// was acknowledged, and any of those without an answer.
type counter struct{ sure, open atomic.Int64 }

// settle compares the count with what is stored.
func (c *counter) settle(stored int64) error {
	least, most := c.sure.Load(), c.sure.Load()+c.open.Load()
	if stored < least || stored > most {
		return fmt.Errorf("the shared count is %d: %d increments were acknowledged, %d had no answer", stored, least, most-least)
	}
	c.sure.Store(stored)
	c.open.Store(0)
	return nil
}
