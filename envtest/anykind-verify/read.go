package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readAll reads the objects of each file.
func readAll(files []string) (steps [][]client.Object, err error) {
	for _, name := range files {
		objects, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		steps = append(steps, objects)
	}
	return steps, nil
}

// read reads a file of YAML or JSON documents.
func read(name string) (objects []client.Object, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, errors.Unwrap(err) // without the name
	}
	defer file.Close()
	for d := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		var raw runtime.RawExtension
		switch err := d.Decode(&raw); {
		case errors.Is(err, io.EOF):
			if len(objects) == 0 {
				return nil, errors.New("it has no objects")
			}
			return objects, nil
		case err != nil:
			return nil, err
		}
		if len(raw.Raw) == 0 || string(raw.Raw) == "null" { // an empty document
			continue
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw.Raw); err != nil {
			return nil, err
		}
		if u.GetAPIVersion() == "" || u.GetName() == "" || u.IsList() {
			return nil, fmt.Errorf("object %d needs apiVersion and metadata.name, and is no list", len(objects)+1)
		}
		objects = append(objects, u)
	}
}
