//go:build !linux

package main

// unload leaves it to the system what of the program is resident.
func unload() {}
