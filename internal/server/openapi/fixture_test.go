package openapi

import "github.com/anykind/anykind/internal/server/openapi/openapitest"

// Definitions and requests of the tests.
const (
	kites = openapitest.Kites
	skies = openapitest.Skies
)

var (
	ask               = openapitest.Ask
	custom            = openapitest.Custom
	nativeDefinitions = openapitest.Native
)
