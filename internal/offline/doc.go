// Package offline is the wing of commands that need no server. It has no code of its own.
//
// check gives the verdict of a server on files; migration is the client of a migration; plugin
// makes the program a plugin of kubectl; assets fills a folder with programs for tests that start
// an API server.
//
// The wing imports all wings before it.
//
// Begin with check/check.go.
package offline
