package audit

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/anykind/anykind/internal/network/kubeconfig"
)

// webhookTimeout limits a request to a webhook.
const webhookTimeout = 30 * time.Second

// maxAnswer limits the part of an answer that an error quotes.
const maxAnswer = 1 << 10

// A webhook is a writer that posts lists of events. It repeats a request that fails for any reason:
// losing events is worse than sending them twice.
type webhook struct {
	url     string
	client  *http.Client
	retries wait.Backoff
	ctx     context.Context
	stop    context.CancelFunc
}

func newWebhook(config *kubeconfig.Config, pause time.Duration, dial func(ctx context.Context, network, address string) (net.Conn, error)) *webhook {
	h := &webhook{
		url: config.Post("", webhookTimeout), client: config.ClientBy(dial),
		retries: wait.Backoff{Duration: pause, Factor: 1.5, Jitter: 0.2, Steps: 5},
	}
	h.client.Timeout = webhookTimeout
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

func (h *webhook) write(events [][]byte) (lost int, err error) {
	body := []byte(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[`)
	for i, data := range events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, data...)
	}
	body = append(body, "]}\n"...)
	var last error
	err = wait.ExponentialBackoffWithContext(h.ctx, h.retries, func(context.Context) (bool, error) {
		last = h.post(body)
		return last == nil, nil
	})
	if err = cmp.Or(last, err); err != nil {
		lost = len(events)
	}
	return lost, err
}

func (h *webhook) post(body []byte) error {
	r, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	answer, err := h.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the webhook answered %s: %s", answer.Status, text)
	}
	return err
}

// close ends requests and their repetitions.
func (h *webhook) close() {
	h.stop()
	h.client.CloseIdleConnections()
}
