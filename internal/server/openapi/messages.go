package openapi

import (
	"fmt"
	"maps"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// encodeV3 returns an OpenAPI v3 document in protobuf. It converts the JSON, the form that most
// clients request.
func encodeV3(doc []byte) []byte {
	var f fields
	if err := utiljson.Unmarshal(doc, (*map[string]any)(&f)); err != nil {
		panic(fmt.Sprintf("openapi: a document of OpenAPI v3 is no JSON: %v", err))
	}
	return protobufV3().append(make([]byte, 0, len(doc)), f)
}

// protobufV2 and protobufV3 are the messages of a document.
var (
	protobufV2 = sync.OnceValue(newProtobufV2)
	protobufV3 = sync.OnceValue(newProtobufV3)
)

func newProtobufV2() message {
	schema := limitFields(0)
	maps.Copy(schema, message{
		"$ref":                 {1, text},
		"format":               {2, text},
		"title":                {3, text},
		"description":          {4, text},
		"required":             {19, list(text)},
		"enum":                 {20, list(literal)},
		"additionalProperties": {21, orBoolean(schema.field)},
		"type":                 {22, in(1, text)},
		"items":                {23, in(1, schema.field)},
		"properties":           {25, in(1, named(schema.field))},
		"externalDocs":         {29, externalDocs().field},
		"example":              {30, literal},
		extension:              {31, named(literal)},
	})
	parameter := parameterV2(schema.field)
	parameters := list(orReference(parameter))
	response := message{
		"description": {1, text},
		"schema":      {2, in(1, schema.field)},
	}
	operation := message{
		"tags":        {1, list(text)},
		"description": {3, text},
		"operationId": {5, text},
		"produces":    {6, list(text)},
		"consumes":    {7, list(text)},
		"parameters":  {8, parameters},
		"responses":   {9, in(1, named(in(1, response.field)))},
		"schemes":     {10, list(text)},
		extension:     {13, named(literal)},
	}
	pathItem := message{
		"get":        {2, operation.field},
		"put":        {3, operation.field},
		"post":       {4, operation.field},
		"delete":     {5, operation.field},
		"options":    {6, operation.field},
		"head":       {7, operation.field},
		"patch":      {8, operation.field},
		"parameters": {9, parameters},
	}
	apiKey := message{
		"type":        {1, text},
		"name":        {2, text},
		"in":          {3, text},
		"description": {4, text},
	}
	return message{
		"swagger":             {1, text},
		"info":                {2, infoFields(2).field},
		"paths":               {8, in(2, named(pathItem.field))},
		"definitions":         {9, in(1, named(schema.field))},
		"parameters":          {10, in(1, named(parameter))},
		"security":            {12, list(in(1, named(in(1, list(text)))))},
		"securityDefinitions": {13, in(1, named(in(2, apiKey.field)))},
	}
}

// parameterV2 encodes a parameter. Each location of a parameter has its own message.
func parameterV2(schema encoding) encoding {
	body := in(1, message{
		"name":     {2, text},
		"in":       {3, text},
		"required": {4, boolean},
		"schema":   {5, schema},
	}.field)
	query := in(2, in(3, message{
		"in":          {2, text},
		"description": {3, text},
		"name":        {4, text},
		"type":        {6, text},
		"uniqueItems": {20, boolean},
	}.field))
	path := in(2, in(4, message{
		"required":    {1, boolean},
		"in":          {2, text},
		"description": {3, text},
		"name":        {4, text},
		"type":        {5, text},
		"uniqueItems": {19, boolean},
	}.field))
	return func(dst []byte, number protowire.Number, v any) []byte {
		switch fieldsOf(v)["in"] {
		case "body":
			return body(dst, number, v)
		case "query":
			return query(dst, number, v)
		default:
			return path(dst, number, v)
		}
	}
}

func newProtobufV3() message {
	schemaFields := limitFields(4)
	schema := orReference(schemaFields.field)
	maps.Copy(schemaFields, message{
		"nullable":             {1, boolean},
		"externalDocs":         {6, externalDocs().field},
		"example":              {7, literal},
		"title":                {9, text},
		"required":             {23, list(text)},
		"enum":                 {24, list(literal)},
		"type":                 {25, text},
		"allOf":                {26, list(schema)},
		"oneOf":                {27, list(schema)},
		"anyOf":                {28, list(schema)},
		"not":                  {29, schemaFields.field},
		"items":                {30, in(1, schema)},
		"properties":           {31, in(1, named(schema))},
		"additionalProperties": {32, orBoolean(schema)},
		"default":              {33, defaultValue},
		"description":          {34, text},
		"format":               {35, text},
		extension:              {36, named(literal)},
	})
	parameters := list(in(1, message{
		"name":        {1, text},
		"in":          {2, text},
		"description": {3, text},
		"required":    {4, boolean},
		"schema":      {10, schema},
	}.field))
	content := in(1, named(message{"schema": {1, schema}}.field))
	requestBody := message{
		"content":  {2, content},
		"required": {3, boolean},
	}
	response := message{
		"description": {1, text},
		"content":     {3, content},
	}
	operation := message{
		"tags":        {1, list(text)},
		"description": {3, text},
		"operationId": {5, text},
		"parameters":  {6, parameters},
		"requestBody": {7, in(1, requestBody.field)},
		"responses":   {8, in(2, named(in(1, response.field)))},
		extension:     {13, named(literal)},
	}
	pathItem := message{
		"get":        {4, operation.field},
		"put":        {5, operation.field},
		"post":       {6, operation.field},
		"delete":     {7, operation.field},
		"options":    {8, operation.field},
		"head":       {9, operation.field},
		"patch":      {10, operation.field},
		"parameters": {13, parameters},
	}
	securityScheme := message{
		"type":        {1, text},
		"description": {2, text},
		"name":        {3, text},
		"in":          {4, text},
	}
	components := message{
		"schemas":         {1, in(1, named(schema))},
		"securitySchemes": {7, in(1, named(in(1, securityScheme.field)))},
	}
	return message{
		"openapi":    {1, text},
		"info":       {2, infoFields(6).field},
		"paths":      {4, in(1, named(pathItem.field))},
		"components": {5, components.field},
	}
}

// limitFields are the validations in a schema. higher has the field numbers of the version with
// the higher ones.
func limitFields(higher protowire.Number) message {
	return message{
		"multipleOf":       {6 + higher, double},
		"maximum":          {7 + higher, double},
		"exclusiveMaximum": {8 + higher, boolean},
		"minimum":          {9 + higher, double},
		"exclusiveMinimum": {10 + higher, boolean},
		"maxLength":        {11 + higher, integer},
		"minLength":        {12 + higher, integer},
		"pattern":          {13 + higher, text},
		"maxItems":         {14 + higher, integer},
		"minItems":         {15 + higher, integer},
		"uniqueItems":      {16 + higher, boolean},
		"maxProperties":    {17 + higher, integer},
		"minProperties":    {18 + higher, integer},
	}
}

func infoFields(version protowire.Number) message {
	return message{"title": {1, text}, "version": {version, text}}
}

func externalDocs() message { return message{"description": {1, text}, "url": {2, text}} }

// defaultValue encodes a number, a boolean or a string. The message has no field for other
// defaults.
func defaultValue(dst []byte, number protowire.Number, v any) []byte {
	return nested(dst, number, func(dst []byte) []byte {
		switch v.(type) {
		case int64, float64:
			return double(dst, 1, v)
		case bool:
			return boolean(dst, 2, v)
		case string:
			return text(dst, 3, v)
		}
		return dst
	})
}
