package pod

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/network/socket"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// A logReader is the subresource log: the log of a container from its kubelet.
type logReader struct{ *connecter }

func (l logReader) Connect(ctx context.Context, c resource.Connection) (http.Handler, error) {
	o := c.Options.(*corev1.PodLogOptions)
	if o.Stream == nil && c.Gates.On(gate.PodLogsQuerySplitStreams) {
		o.Stream = new(corev1.LogStreamAll)
	}
	if errs := append(validateLogOptions(o), validateLogStream(c.Gates, o)...); len(errs) > 0 {
		return nil, status.Invalid(schema.GroupKind{Kind: "PodLogOptions"}, c.Name, errs)
	}
	pod, err := c.Objects.Get(ctx, l.pods, c.Namespace, c.Name)
	if err != nil {
		return nil, err
	}
	container, err := containerOf(pod, o.Container)
	if err != nil {
		return nil, err
	}
	if kind.Text(pod, "spec", "nodeName") == "" {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), nil
	}
	_, to, err := l.kubelet(ctx, c.Objects, pod)
	if err != nil {
		return nil, err
	}
	to.Path = fmt.Sprintf("/containerLogs/%s/%s/%s", object.Namespace(pod), object.Name(pod), container)
	to.RawQuery = logQuery(o).Encode()
	transport := l.kubelets.Transport()
	if o.InsecureSkipTLSVerifyBackend {
		transport = l.kubelets.InsecureTransport()
	}
	return logStream{name: c.Name, from: to, transport: transport}, nil
}

// logQuery encodes the options as a kubelet expects them.
func logQuery(o *corev1.PodLogOptions) url.Values {
	query := url.Values{}
	for name, set := range map[string]bool{"follow": o.Follow, "previous": o.Previous, "timestamps": o.Timestamps} {
		if set {
			query.Set(name, "true")
		}
	}
	for name, n := range map[string]*int64{"sinceSeconds": o.SinceSeconds, "tailLines": o.TailLines, "limitBytes": o.LimitBytes} {
		if n != nil {
			query.Set(name, strconv.FormatInt(*n, 10))
		}
	}
	if o.SinceTime != nil {
		query.Set("sinceTime", o.SinceTime.Format(time.RFC3339))
	}
	if o.Stream != nil {
		query.Set("stream", *o.Stream)
	}
	return query
}

func validateLogOptions(o *corev1.PodLogOptions) (errs field.ErrorList) {
	if n := o.TailLines; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(field.NewPath("tailLines"), *n, "must be greater than or equal to 0"))
	}
	if n := o.LimitBytes; n != nil && *n < 1 {
		errs = append(errs, field.Invalid(field.NewPath("limitBytes"), *n, "must be greater than 0"))
	}
	switch n := o.SinceSeconds; {
	case n != nil && o.SinceTime != nil:
		errs = append(errs, field.Forbidden(field.NewPath(""), "at most one of `sinceTime` or `sinceSeconds` may be specified"))
	case n != nil && *n < 1:
		errs = append(errs, field.Invalid(field.NewPath("sinceSeconds"), *n, "must be greater than 0"))
	}
	return errs
}

// validateLogStream validates the stream of a log. A stream is an error without the gate PodLogsQuerySplitStreams.
func validateLogStream(gates *gate.Set, o *corev1.PodLogOptions) (errs field.ErrorList) {
	at := field.NewPath("stream")
	switch {
	case o.Stream == nil:
		return nil
	case !gates.On(gate.PodLogsQuerySplitStreams):
		return field.ErrorList{field.Forbidden(at, "may not be specified")}
	}
	if known := []string{corev1.LogStreamAll, corev1.LogStreamStderr, corev1.LogStreamStdout}; !slices.Contains(known, *o.Stream) {
		errs = append(errs, field.NotSupported(at, *o.Stream, known))
	}
	if *o.Stream != corev1.LogStreamAll && o.TailLines != nil {
		errs = append(errs, field.Forbidden(field.NewPath(""), "`tailLines` and specific `stream` are mutually exclusive for now"))
	}
	return errs
}

// A logStream copies the response of a kubelet.
type logStream struct {
	name      string
	from      *url.URL
	transport http.RoundTripper
}

func (l logStream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := l.ask(r.Context())
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	defer answer.Body.Close()
	if socket.Wanted(r) {
		messages(w, r, answer.Body)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	_ = control.Flush() // some writers in tests cannot flush
	if err := parts(answer.Body, func(part []byte) error {
		if _, err := w.Write(part); err != nil {
			return err
		}
		_ = control.Flush()
		return nil
	}); err != nil {
		panic(http.ErrAbortHandler) // the client sees that the response is incomplete
	}
}

// parts calls each with the parts of a text as they arrive.
func parts(from io.Reader, each func(part []byte) error) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if err := each(buffer[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// messages sends a log over a WebSocket: an empty message, and then each part as one, in the form of the protocol.
func messages(w http.ResponseWriter, r *http.Request, from io.ReadCloser) {
	const binary, encoded = "binary.k8s.io", "base64.binary.k8s.io"
	websocket.Server{
		Handshake: func(c *websocket.Config, _ *http.Request) error {
			for _, protocol := range c.Protocol {
				if protocol == binary || protocol == encoded {
					c.Protocol = []string{protocol}
					return nil
				}
			}
			if len(c.Protocol) > 0 {
				return fmt.Errorf("requested protocol(s) are not supported: %v; supports [%s %s]", c.Protocol, binary, encoded)
			}
			c.Protocol = []string{""}
			return nil
		},
		Handler: func(c *websocket.Conn) {
			defer c.Close() // with a message about the end
			go func() {
				_, _ = io.Copy(io.Discard, c)
				from.Close() // the client disconnected
			}()
			send := func(part []byte) error {
				if c.Config().Protocol[0] == encoded {
					return websocket.Message.Send(c, base64.StdEncoding.EncodeToString(part))
				}
				return websocket.Message.Send(c, part)
			}
			if send([]byte{}) == nil {
				_ = parts(from, send) // the connection ends with the log, and with an error
			}
		},
	}.ServeHTTP(socket.Writer(w), r)
}

// maxRefusal limits the error message of a kubelet.
const maxRefusal = 50000

func (l logStream) ask(ctx context.Context) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.from.String(), nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: l.transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("redirects forbidden")
	}}
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusOK && answer.StatusCode <= http.StatusPartialContent {
		return answer, nil
	}
	defer answer.Body.Close()
	message, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	switch code := answer.StatusCode; {
	case err != nil:
		return nil, status.Internal(err)
	case code == http.StatusInternalServerError:
		return nil, status.Internal(errors.New(string(message)))
	case code == http.StatusBadRequest:
		return nil, status.BadRequest("%s", message)
	default:
		return nil, apierrors.NewGenericServerResponse(code, "", schema.GroupResource{Resource: "pods/log"}, l.name, string(message), 0, false)
	}
}
