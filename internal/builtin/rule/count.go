package rule

// Counts rejects a decrease. Nil is less than any number.
func (c *Check) Counts(value, old *int32) {
	now := int32(0)
	if value != nil {
		now = *value
	}
	if old != nil && (value == nil || now < *old) {
		c.Invalid(now, "cannot be decremented")
	}
}

// AtMost rejects a number greater than another one.
func (c *Check) AtMost(n, than int32, name string) {
	if n > than {
		c.Invalid(n, "cannot be greater than "+name)
	}
}
