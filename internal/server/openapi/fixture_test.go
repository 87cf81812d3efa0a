package openapi

import "github.com/anykind/anykind/internal/server/openapi/openapitest"

// What tests publish, and how they ask for it.
const (
	kites = openapitest.Kites
	skies = openapitest.Skies
)

var (
	ask               = openapitest.Ask
	custom            = openapitest.Custom
	nativeDefinitions = openapitest.Native
)
