package openapi

import (
	"maps"
	"slices"
)

// A pathItem is one path and what can be done there.
type pathItem struct {
	path       string
	parameters []parameter // of all operations
	operations []operation
}

// pathItems are paths that are being put together.
type pathItems []pathItem

// add adds a path with those of the operations that there are.
func (p *pathItems) add(path string, all ...operation) {
	all = slices.DeleteFunc(all, func(o operation) bool { return o.method == "" })
	if len(all) > 0 {
		*p = append(*p, pathItem{path, share(all), all})
	}
}

// v3 returns the paths as OpenAPI v3 has them.
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

// v3 says that each media type is of the schema.
func (c content) v3() raw {
	f := fields{}
	for _, m := range c.media {
		f[m] = fields{"schema": c.reference(refPrefix)}
	}
	return appendJSON(nil, f)
}

// reference is to the schema, the path of which begins with a prefix.
func (c content) reference(prefix string) fields {
	if c.schema == "" {
		return fields{"type": "string"}
	}
	return fields{"$ref": prefix + c.schema}
}

// responses returns what an operation answers; field names what it is said in.
func (o operation) responses(field string, answer any) fields {
	responses := fields{"401": fields{"description": "Unauthorized"}}
	for _, code := range o.codes {
		description := map[string]string{"200": "OK", "201": "Created", "202": "Accepted"}[code]
		responses[code] = fields{"description": description, field: answer}
	}
	return responses
}

// v2 returns the path as OpenAPI v2 has it.
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

// v2 returns the operation as OpenAPI v2 has it, where what is sent is a
// parameter too.
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
