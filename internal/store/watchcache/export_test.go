package watchcache

// Unreadable returns the value of an object with an error.
func Unreadable(o *Object) []byte { return o.content.Load().JSON }
