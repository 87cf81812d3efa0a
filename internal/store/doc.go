// Package store is the wing of storage. It has no code of its own.
//
// Package kv is the contract of a store: a map from key to bytes that remembers its recent past.
// memkv, boltkv and etcdkv implement it in memory, in a file and in etcd; kvtest proves each of
// them; journal makes the writes of boltkv durable; transform is a decorator that stores values in another form, and history
// one that keeps all states in a file. boltfile and etcdsnapshot
// read files without opening a store, and map their values. watchcache follows a store and keeps
// the objects that are in use; stored derives values from stored objects and caches them.
//
// The wing knows keys, bytes, revisions and the headers of objects. It imports the wing object
// only.
//
// Begin with kv/kv.go, then memkv, then watchcache/feed.go.
package store
