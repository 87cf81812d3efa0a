// Package rules holds the rules of this repository, as tests.
//
// A rule reads source, not types, so that all of them together take a moment,
// and says in its message what to do. It knows the files of the repository and
// nothing of what they mean. There is nothing here to import.
package rules
