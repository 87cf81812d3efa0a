package main

import _ "embed"

// unit is what systemd runs the server by.
//
//go:embed anykind.service
var unit []byte
