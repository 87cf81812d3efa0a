// Package rules holds the rules of this repository, as tests.
//
// A rule reads source and not types, so all rules together take a moment. Its message says
// what to do. The package knows the files of the repository and nothing of their meaning. It
// exports nothing.
package rules
