// Package offline is the wing of commands that need no server. It has no code of its own.
//
// check validates files as a server would, and lsp is a language server over it; conversion converts
// objects by rules; apiclient sends the requests of commands to a server; backup saves copies of the store
// of a server, and applies their objects; fork is the client of the forks of a server; history is the
// client of the history that a server keeps; migration is the client of a storage migration; plugin
// installs the program as a kubectl plugin; assets installs programs for tests that start an API server.
//
// The wing imports all wings before it.
//
// Begin with check/check.go.
package offline
