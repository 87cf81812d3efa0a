// Package manifest loads webhook configurations and policies from files on the disk of the server,
// and reloads them when they change. They cannot be reached through the API.
//
// It knows folders, files, and the rules for objects in files. The plugins interpret the objects.
package manifest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// Suffix ends the names of objects in files. Objects of the API cannot have such names.
const Suffix = ".static.k8s.io"

// A Folder has the manifest files of one plugin.
type Folder struct {
	Path string
	// Plugin is the name of the plugin.
	Plugin string
	// Kinds are the allowed kinds of objects.
	Kinds []*resource.Definition
	// Check validates an object of a file beyond the rules of its kind, and CheckAll all objects
	// together. CheckAll may be nil.
	Check    func(t object.Tree, file string) error
	CheckAll func(objects []object.Tree) error
	// Replace replaces the loaded objects. They are sorted by name and have their defaults. If
	// Replace fails, the previous objects stay in force.
	Replace func(objects []object.Tree) error
	Metrics *Metrics
	Log     *slog.Logger

	sum string // of the last files read
}

// CheckPath validates the staticManifestsDir of a configuration file. An empty path is valid.
func CheckPath(path string, gates *gate.Set) error {
	if path == "" {
		return nil
	}
	if !gates.On(gate.ManifestBasedAdmissionControlConfig) {
		return field.Forbidden(field.NewPath("staticManifestsDir"), "staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled")
	}
	problem := ""
	info, err := os.Stat(path)
	switch {
	case !filepath.IsAbs(path):
		problem = "must be an absolute file path"
	case err != nil:
		problem = fmt.Sprintf("unable to read: %v", err)
	case !info.IsDir():
		problem = "must be a directory"
	default:
		return nil
	}
	return field.Invalid(field.NewPath("staticManifestsDir"), path, problem)
}

// Load reads the folder and applies its objects.
func (f *Folder) Load() error {
	objects, sum, err := f.read()
	if err == nil {
		err = f.Replace(objects)
	}
	if err != nil {
		return err
	}
	f.Metrics.loaded(f.Plugin, sum, nil)
	f.Log.Info("loaded manifest-based admission configurations", "plugin", f.Plugin, "count", len(objects))
	f.sum = sum
	return nil
}

// lookAgain is the interval at which files are checked for changes.
const lookAgain = time.Second

// Follow reloads the folder when a file changes, until ctx ends. If reading or applying fails, it
// logs the error and the previous objects stay in force.
func (f *Folder) Follow(ctx context.Context) {
	failed := ""
	for {
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return
		}
		objects, sum, err := f.read()
		if err == nil && sum == f.sum {
			continue
		}
		if err == nil {
			err = f.Replace(objects)
		}
		switch {
		case err != nil && err.Error() == failed:
			continue
		case err != nil:
			failed = err.Error()
			f.Log.Error("the manifests of an admission plugin were not loaded; the previous ones stay in effect", "plugin", f.Plugin, "folder", f.Path, "error", err)
		default:
			failed, f.sum = "", sum
			f.Log.Info("reloaded admission manifest config", "plugin", f.Plugin, "folder", f.Path)
		}
		f.Metrics.loaded(f.Plugin, sum, err)
	}
}

// read returns the objects, and a hash of their files.
func (f *Folder) read() (objects []object.Tree, sum string, err error) {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return nil, "", fmt.Errorf("failed to read manifest directory %q: %w", f.Path, err)
	}
	hash, any := sha256.New(), false
	in := map[string]string{} // files, by the kinds and names of their objects
	for _, entry := range entries {
		switch strings.ToLower(filepath.Ext(entry.Name())) {
		case ".yaml", ".yml", ".json":
		default:
			continue
		}
		file := filepath.Join(f.Path, entry.Name())
		if entry.IsDir() {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, "", fmt.Errorf("failed to read file %q: %w", file, err)
		}
		if len(data) == 0 {
			continue
		}
		any = true
		hash.Write(data)
		hash.Write([]byte{0})
		found, err := f.decode(data)
		if err != nil {
			return nil, "", fmt.Errorf("error loading %s: %w", file, err)
		}
		for _, t := range found {
			if err := f.accept(t, file, in); err != nil {
				return nil, "", fmt.Errorf("error loading %s: %w", file, err)
			}
		}
		objects = append(objects, found...)
	}
	if f.CheckAll != nil {
		if err := f.CheckAll(objects); err != nil {
			return nil, "", err
		}
	}
	slices.SortStableFunc(objects, func(a, b object.Tree) int { return strings.Compare(object.Name(a), object.Name(b)) })
	if any {
		sum = fmt.Sprintf("sha256:%x", hash.Sum(nil))
	}
	return objects, sum, nil
}

// decode returns the objects of a file.
func (f *Folder) decode(data []byte) (all []object.Tree, err error) {
	for documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := documents.Read()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("failed to split YAML documents: %w", err)
		}
		document = bytes.TrimSpace(document)
		if len(document) == 0 {
			continue
		}
		form := codec.YAML
		if document[0] == '{' {
			form = codec.JSON
		}
		t, duplicates, err := codec.Decode(form, document)
		if err != nil {
			return nil, err
		}
		if len(duplicates) > 0 {
			return nil, fmt.Errorf("strict decoding error: %s", strings.Join(duplicates, ", "))
		}
		found, err := f.complete(t, document)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
}

// complete returns an object with its defaults, or the items of a list. text is the source of the
// object.
func (f *Folder) complete(t object.Tree, text []byte) (all []object.Tree, err error) {
	apiVersion, kind := object.APIVersion(t), object.Kind(t)
	for _, d := range f.Kinds {
		v := d.StorageVersion()
		if kind == d.Kind && d.IsAPIVersion(apiVersion, v.Name) {
			t, unknown, err := v.Schema.Complete(t)
			if err != nil { // the wording of the upstream decoder
				if cause := status.Cause(err); cause != err {
					err = undecodable{cause}
				}
			}
			if err == nil && len(unknown) > 0 {
				err = undecodable{fmt.Errorf("strict decoding error: unknown field %q", unknown[0])}
			}
			if err == nil {
				err = validate(d, t)
			}
			return []object.Tree{t}, err
		}
	}
	if err := f.isList(apiVersion, kind, text); err != nil {
		return nil, err
	}
	items, _ := t["items"].([]any)
	for _, item := range items {
		one, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("failed to decode list item: it is no object")
		}
		if kind != "List" { // items of a typed list may omit their kind
			one["apiVersion"], one["kind"] = apiVersion, strings.TrimSuffix(kind, "List")
		}
		found, err := f.complete(one, object.AppendJSON(nil, one))
		if kind == "List" && errors.As(err, &undecodable{}) {
			err = fmt.Errorf("failed to decode list item: %w", err)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// undecodable is the error for an unknown kind of the group, or an unknown field.
type undecodable struct{ error }

// isList returns an error if an object is not a list of an allowed kind.
func (f *Folder) isList(apiVersion, kind string, text []byte) error {
	isOurs := func(d *resource.Definition) bool {
		return kind == d.Kind+"List" && d.IsAPIVersion(apiVersion, d.StorageVersion().Name)
	}
	switch {
	case kind == "":
		return undecodable{fmt.Errorf("Object 'Kind' is missing in '%s'", text)}
	case apiVersion == "":
		return undecodable{fmt.Errorf("Object 'apiVersion' is missing in '%s'", text)}
	case kind == "List" || slices.ContainsFunc(f.Kinds, isOurs):
		return nil
	case strings.HasPrefix(apiVersion, f.Kinds[0].Group+"/"):
		return fmt.Errorf("unsupported resource type *%s.%s", path.Base(apiVersion), kind)
	}
	return undecodable{fmt.Errorf("no kind %q is registered for version %q", kind, apiVersion)}
}

// validate validates an object by the rules of its kind. It replaces the name, which the API would
// reject.
func validate(d *resource.Definition, t object.Tree) error {
	named := object.CloneTree(t)
	object.SetMetaString(named, "name", strings.TrimSuffix(object.Name(t), Suffix))
	validName := d.ValidateName
	if validName == nil {
		validName = apivalidation.NameIsDNSSubdomain
	}
	errs := apivalidation.ValidateObjectMetaAccessor(object.AccessorOf(t), d.Namespaced, validName, field.NewPath("metadata"))
	ctx := context.Background()
	errs = append(errs, d.StorageVersion().Schema.Validate(ctx, named, nil)...)
	if d.Validate != nil {
		errs = append(errs, d.Validate(ctx, &resource.Change{Object: named, Name: object.Name(named)})...)
	}
	if len(errs) > 0 {
		return fmt.Errorf("%s %q: %w", d.Kind, object.Name(t), errs.ToAggregate())
	}
	return nil
}

// accept checks the rules that apply only to objects in files.
func (f *Folder) accept(t object.Tree, file string, in map[string]string) error {
	name, seen := object.Name(t), object.Kind(t)+"/"+object.Name(t)
	switch {
	case name == "":
		return fmt.Errorf("resource in file %q must have a name", file)
	case !strings.HasSuffix(name, Suffix):
		return fmt.Errorf("%q in file %q must have a name ending with %q", name, file, Suffix)
	case in[seen] != "":
		return fmt.Errorf("duplicate name %q found in file %q (previously seen in %q)", name, file, in[seen])
	}
	in[seen] = file
	return f.Check(t, file)
}
