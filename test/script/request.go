package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// request is the command request.
func request(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 2 || len(args) == 3, "request METHOD PATH [FILE]")
	method, path := args[0], args[1]
	var body io.Reader
	contentType := ""
	if len(args) == 3 {
		data, err := os.ReadFile(ts.MkAbs(args[2]))
		ts.Check(err)
		body = bytes.NewReader(data)
		contentType = mediaType(method, args[2])
	}
	status, answer, err := send(ts.Getenv("KUBECONFIG"), method, path, contentType, body)
	ts.Check(err)
	fmt.Fprintln(ts.Stdout(), status)
	_, err = ts.Stdout().Write(answer)
	ts.Check(err)
}

// curl is the command curl.
func curl(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) > 0, "curl URL [HEADER...]")
	r, err := http.NewRequest(http.MethodGet, args[0], nil)
	ts.Check(err)
	r.Header.Set("User-Agent", "curl/8.0.0") // the server then indents JSON
	r.Header.Set("Accept", "*/*")
	for _, header := range args[1:] {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	response, err := client.Do(r)
	ts.Check(err)
	defer response.Body.Close()
	_, err = io.Copy(ts.Stdout(), response.Body)
	ts.Check(err)
}

func mediaType(method, file string) string {
	switch {
	case filepath.Ext(file) == ".yaml":
		return "application/yaml"
	case method == http.MethodPatch:
		return "application/merge-patch+json"
	}
	return "application/json"
}

// send sends one request with the credentials of a kubeconfig.
func send(kubeconfig, method, path, contentType string, body io.Reader) (status string, answer []byte, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", nil, err
	}
	defer client.CloseIdleConnections()
	r, err := http.NewRequest(method, strings.TrimSuffix(config.Host, "/")+path, body)
	if err != nil {
		return "", nil, err
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	response, err := client.Do(r)
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		return "", nil, err
	}
	return response.Status, indent(answer), nil
}

// indent indents JSON, and returns other data unchanged.
func indent(data []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil {
		return data
	}
	if !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
		b.WriteByte('\n')
	}
	return b.Bytes()
}
