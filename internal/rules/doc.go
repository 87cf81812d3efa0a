// Package rules holds the rules of this repository, as tests.
//
// A rule reads source and not types, so all rules together are fast. Its message says how to fix a
// violation. The package knows the files of the repository and nothing of their meaning. It exports
// nothing.
package rules
