// Package kits runs the tests of the test kits in kits, each in its own language, against the program anykind.
//
// A test is skipped if its language is not installed. It downloads nothing, unless the flag -download is set:
// then the client libraries that the kit names are installed from their registry, in a temporary folder.
package kits
