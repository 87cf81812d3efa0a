package resource

// A Place is the place of an object in the API, as answers about objects of many kinds name it.
type Place struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Resource  string `json:"resource"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Place returns the place of an object in a version of the Definition.
func (d *Definition) Place(version, namespace, name string) Place {
	return Place{Group: d.Group, Version: version, Resource: d.Plural, Kind: d.Kind, Namespace: namespace, Name: name}
}
