package openapi

import (
	"maps"
	"slices"
)

// A pathItem is one path with its operations.
type pathItem struct {
	path       string
	parameters []parameter // of all operations
	operations []operation
}

// pathItems are the paths of a document under construction.
type pathItems []pathItem

// add adds a path with its operations; empty ones are skipped.
func (p *pathItems) add(path string, all ...operation) {
	all = slices.DeleteFunc(all, func(o operation) bool { return o.method == "" })
	if len(all) > 0 {
		*p = append(*p, pathItem{path, share(all), all})
	}
}

// v3 returns the paths in OpenAPI v3.
func (p pathItems) v3() fields {
	out := fields{}
	for _, i := range p {
		item := fields{}
		if len(i.parameters) > 0 {
			item["parameters"] = v3Parameters(i.parameters)
		}
		for _, o := range i.operations {
			item[o.method] = o.v3()
		}
		out[i.path] = item
	}
	return out
}

func (o operation) v3() fields {
	f := maps.Clone(o.fields)
	if len(o.parameters) > 0 {
		f["parameters"] = v3Parameters(o.parameters)
	}
	if o.body.schema != "" {
		body := fields{"content": o.body.v3()}
		if o.required {
			body["required"] = true
		}
		f["requestBody"] = body
	}
	f["responses"] = o.responses("content", o.answer.v3())
	return f
}

// v3 returns the schema for each media type.
func (c content) v3() raw {
	f := fields{}
	for _, m := range c.media {
		f[m] = fields{"schema": c.reference(refPrefix)}
	}
	return appendJSON(nil, f)
}

// reference returns a reference to the schema, with a prefix.
func (c content) reference(prefix string) fields {
	if c.schema == "" {
		return fields{"type": "string"}
	}
	return fields{"$ref": prefix + c.schema}
}

// responses returns the responses of an operation; field is the name of their content.
func (o operation) responses(field string, answer any) fields {
	responses := fields{"401": fields{"description": "Unauthorized"}}
	for _, code := range o.codes {
		description := map[string]string{"200": "OK", "201": "Created", "202": "Accepted"}[code]
		responses[code] = fields{"description": description, field: answer}
	}
	return responses
}

// v2 returns the path in OpenAPI v2.
func (i pathItem) v2() fields {
	item := fields{}
	if len(i.parameters) > 0 {
		item["parameters"] = v2Parameters(i.parameters)
	}
	for _, o := range i.operations {
		item[o.method] = o.v2()
	}
	return item
}

// v2 returns the operation in OpenAPI v2, where the request body is a parameter.
func (o operation) v2() fields {
	f := maps.Clone(o.fields)
	f["schemes"] = []string{"https"}
	if o.body.media != nil {
		f["consumes"] = o.body.media
	}
	f["produces"] = o.answer.media
	parameters := o.parameters
	if o.body.schema != "" {
		parameters = append(slices.Clip(parameters), o.sent)
	}
	if len(parameters) > 0 {
		f["parameters"] = v2Parameters(parameters)
	}
	f["responses"] = o.responses("schema", o.answer.reference(v2RefPrefix))
	return f
}
