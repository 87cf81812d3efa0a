package examples

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
	"github.com/anykind/anykind/test/program"
)

// commands are kubectl's commands for the objects of a file, up to the file name.
var commands = [][]string{
	{"apply", "-f"},
	{"apply", "-f"}, // without a change
	{"get", "-o", "json", "-f"},
	{"apply", "--server-side", "-f"},
	{"delete", "--wait=false", "--grace-period=0", "--force", "-f"},
}

// most is the maximal number of objects for one kubectl command.
const most = 50

// Kubectl applies with kubectl the documents that both servers accepted, and compares the output.
func (c *Comparison) Kubectl(ctx context.Context, dir string) error {
	kubectl, err := program.Kubectl()
	if err != nil {
		return err
	}
	bundles := bundles(c.accepted)
	next := make(chan int)
	var done sync.WaitGroup
	for range 3 {
		done.Go(func() {
			for i := range next {
				c.bundle(ctx, kubectl, filepath.Join(dir, fmt.Sprint(i)), bundles[i])
			}
		})
	}
	for i := range bundles {
		next <- i
	}
	close(next)
	done.Wait()
	return nil
}

// bundles groups the documents with names by kind, each name once. Services may want the same address,
// so they are not applied together.
func bundles(all []*Document) (out [][]*Document) {
	name := func(d *Document) string {
		return fmt.Sprint(d.Kind, " ", d.Metadata.Name, " ", d.namespace())
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *Document) int {
		return cmp.Or(strings.Compare(name(a), name(b)), strings.Compare(a.String(), b.String()))
	})
	all = slices.CompactFunc(all, func(a, b *Document) bool { return name(a) == name(b) })
	for _, d := range all {
		if d.Metadata.Name == "" || d.Kind == "Namespace" || d.Kind == "CustomResourceDefinition" {
			continue
		}
		if len(out) > 0 {
			last := &out[len(out)-1]
			if (*last)[0].Kind == d.Kind && (len(*last) < most || d.Kind == "Service") {
				*last = append(*last, d)
				continue
			}
		}
		out = append(out, []*Document{d})
	}
	return out
}

// bundle runs the commands of kubectl for documents.
func (c *Comparison) bundle(ctx context.Context, kubectl, dir string, bundle []*Document) {
	var items []json.RawMessage
	for _, d := range bundle {
		items = append(items, d.JSON)
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	file := filepath.Join(dir, "list.json")
	if err == nil {
		err = os.WriteFile(file, list, 0o600)
	}
	if err != nil {
		c.add(bundle[0], wire.Step{Kind: "kubectl"}, []judge.Difference{{Place: err.Error()}}, 0)
		return
	}
	sides := [2]*side{}
	for i, client := range []*wire.Client{c.pair.Theirs, c.pair.Ours} {
		sides[i] = &side{client: client, judge: judge.NewServer(scope)}
		sides[i].judge.Sent(wire.Step{Body: list})
	}
	for i, words := range commands {
		step := wire.Step{Kind: "kubectl " + strings.Join(words[:len(words)-1], " "), Resource: bundle[0].Kind, Method: "kubectl", Path: strings.Join(words, " ")}
		if i == 1 {
			step.Kind += " again"
		}
		each(sides, func(x *side) { x.kubectl(ctx, kubectl, dir, append(words[:len(words):len(words)], file)) })
		c.add(bundle[0], step, judge.Compare(sides[0].normal, sides[1].normal), 0)
		c.count(sides[0].normal.Body)
	}
}

// count counts the results that kubectl reports for the objects.
func (c *Comparison) count(lines any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, _ := lines.([]any)
	for _, line := range list {
		text, _ := line.(string)
		for _, word := range []string{"created", "unchanged", "configured", "serverside-applied", "deleted"} {
			if strings.HasSuffix(text, " "+word+"\n") || strings.Contains(text, " "+word+" from ") {
				c.did[word]++
			}
		}
	}
}

// kubectl runs a command and returns its output as a response: JSON, or text.
func (x *side) kubectl(ctx context.Context, kubectl, dir string, words []string) {
	words = append([]string{"--server", "https://" + x.client.Host(), "--token", servers.Token, "--insecure-skip-tls-verify",
		"--cache-dir", filepath.Join(dir, x.client.Host())}, words...)
	command := exec.CommandContext(ctx, kubectl, words...)
	command.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	var said, failed bytes.Buffer
	command.Stdout, command.Stderr = &said, &failed
	a := &wire.Answer{Code: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain"}}}
	if err := command.Run(); err != nil {
		a.Failed = err.Error()
	}
	a.Body = said.Bytes()
	if a.Failed == "" && bytes.HasPrefix(a.Body, []byte("{")) {
		a.Header.Set("Content-Type", "application/json")
	} else {
		a.Failed, a.Body = "", append(a.Body, strings.ReplaceAll(a.Failed+failed.String(), x.client.Host(), "HOST")...)
	}
	x.normal = x.judge.Normal(a)
	if text, ok := x.normal.Body.(string); ok {
		var lines []any
		for line := range strings.Lines(text) {
			lines = append(lines, line)
		}
		x.normal.Body = lines
	}
}
