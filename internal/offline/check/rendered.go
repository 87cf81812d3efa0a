package check

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
)

// kustomizations are the files that make a folder a kustomization.
var kustomizations = [...]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// kustomization returns the kustomization file of a folder, or "".
func kustomization(folder string) string {
	for _, name := range kustomizations {
		if file := filepath.Join(folder, name); isFile(file) {
			return file
		}
	}
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// kustomizeGroup is the group of the kinds that only kustomize reads.
const kustomizeGroup = "kustomize.config.k8s.io"

// chartFile is the file that makes a folder a Helm chart.
const chartFile = "Chart.yaml"

func isChart(folder string) bool { return isFile(filepath.Join(folder, chartFile)) }

// build runs the user's kustomize, or kubectl, and returns the objects of a folder.
func build(folder string) ([]byte, error) {
	cmd := exec.Command("kustomize", "build", folder)
	if errors.Is(cmd.Err, exec.ErrNotFound) {
		cmd = exec.Command("kubectl", "kustomize", folder)
	}
	if cmd.Err != nil {
		return nil, fmt.Errorf("%s is a kustomization, and neither kustomize nor kubectl was found: install one of them, or name files in place of the folder", folder)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(said.String()))
	}
	return out, nil
}

// kustomize reads the objects of a folder as kustomize builds them.
func (r *reader) kustomize(folder string) error {
	out, err := build(folder)
	if err != nil {
		return err
	}
	return r.built(folder, kustomization(folder), out)
}

// built reads the output of kustomize. The place of an object is the file that kustomize names as its
// origin, or the kustomization.
func (r *reader) built(folder, file string, out []byte) error {
	r.mark = func(d *Document) {
		d.file, d.generated = file, true
		var origin struct{ Path, Repo string }
		text, _ := object.Annotation(d.tree, "config.kubernetes.io/origin")
		if yaml.Unmarshal([]byte(text), &origin) == nil && origin.Path != "" && origin.Repo == "" {
			d.file = filepath.Join(folder, filepath.FromSlash(origin.Path))
		}
	}
	defer func() { r.mark = nil }()
	return r.stream(file, bytes.NewReader(out), false)
}

// templateAnnotation has the template of an object in the input of a post-renderer. Helm 4 adds it, and removes it from the
// output.
const templateAnnotation = "postrenderer.helm.sh/postrender-filename"

// sourceOf makes the template that Helm names, in an annotation or a comment, the place of an object.
func sourceOf(d *Document) {
	if source, ok := object.Annotation(d.tree, templateAnnotation); ok {
		d.file, d.generated = source, true
		return
	}
	for line := range strings.Lines(string(d.text)) {
		line = strings.TrimSpace(line)
		if source, ok := strings.CutPrefix(line, "# Source: "); ok {
			d.file, d.generated = source, true
			return
		}
		if !strings.HasPrefix(line, "#") {
			return
		}
	}
}
