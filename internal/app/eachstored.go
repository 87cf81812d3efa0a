package app

import "github.com/anykind/anykind/internal/store/boltkv"

// EachStored calls visit for each key with a prefix in the data directory of a stopped server, in
// the order of their last writes. all is their number.
func EachStored(dir, prefix string, visit func(key string, value []byte, all int) error) error {
	return boltkv.Each(dir, prefix, visit)
}
