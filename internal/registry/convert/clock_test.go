package convert_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/network/webhook"
	"github.com/anykind/anykind/internal/registry/convert"
)

// posterFunc is a Poster without a network.
type posterFunc func(ctx context.Context, call webhook.Call) (webhook.Reply, error)

func (p posterFunc) Post(ctx context.Context, _ *webhook.Config, call webhook.Call) (webhook.Reply, error) {
	return p(ctx, call)
}

// Responses of a webhook are valid until a minute is over, until a call fails, or until another peer
// responds. A rejected object and a canceled request invalidate nothing.
func TestWhatHolds(t *testing.T) {
	right := func(change func(r *review)) posterFunc {
		return func(_ context.Context, call webhook.Call) (webhook.Reply, error) {
			var in review
			if err := json.Unmarshal(call.Body, &in); err != nil {
				return webhook.Reply{}, err
			}
			out := answer(in)
			if change != nil {
				change(&out)
			}
			body, err := json.Marshal(out)
			return webhook.Reply{Body: body, Peer: "a"}, err
		}
	}
	from := func(peer string) posterFunc {
		return func(ctx context.Context, call webhook.Call) (webhook.Reply, error) {
			reply, err := right(nil)(ctx, call)
			reply.Peer = peer
			return reply, err
		}
	}
	fails := posterFunc(func(ctx context.Context, _ webhook.Call) (webhook.Reply, error) {
		if ctx.Err() != nil {
			return webhook.Reply{}, ctx.Err()
		}
		return webhook.Reply{}, errors.New("connection refused")
	})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name  string
		ctx   context.Context
		wait  time.Duration
		next  posterFunc // responds to one more call; nil for none
		holds bool
	}{
		{name: "nothing happens", wait: convert.KeepFor - 1, holds: true},
		{name: "the time is over", wait: convert.KeepFor},
		{name: "the same webhook answers again", next: right(nil), holds: true},
		{name: "another address or certificate answers", next: from("b")},
		{name: "a call fails", next: fails},
		{name: "the client of a call goes away", ctx: gone, next: fails, holds: true},
		{name: "the webhook answers something else", next: func(context.Context, webhook.Call) (webhook.Reply, error) {
			return webhook.Reply{Body: []byte("<html>"), Peer: "a"}, nil
		}},
		{name: "the webhook refuses an object", next: right(func(r *review) {
			r.Response["result"] = map[string]any{"status": "Failure", "message": "no"}
		}), holds: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &convert.Webhook{Group: "example.com", ReviewVersions: []string{"v1"}}
				call := func(ctx context.Context, p posterFunc) {
					w.Poster = p
					_, _ = w.Convert(ctx, []map[string]any{crontab("a")}, "v1")
				}
				_, at := w.Clock()
				call(t.Context(), right(nil))
				time.Sleep(test.wait)
				if test.next != nil {
					ctx := test.ctx
					if ctx == nil {
						ctx = t.Context()
					}
					call(ctx, test.next)
				}
				since, now := w.Clock()
				if holds := at >= since; holds != test.holds {
					t.Errorf("holds: %t, want %t", holds, test.holds)
				}
				if now < since && test.holds {
					t.Errorf("it is %d, and what is of %d or later holds", now, since)
				}
			})
		})
	}
}

// All responses of one span expire together. Data derived from a response late in the span expires
// with it.
func TestWhatIsMadeOfAnAnswerEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w convert.Webhook
		_, answered := w.Clock()
		time.Sleep(convert.KeepFor - 1)
		since, made := w.Clock()
		if since > answered {
			t.Fatal("the answer does not hold")
		}
		time.Sleep(time.Nanosecond)
		if since, _ := w.Clock(); since <= made {
			t.Error("what was made of it holds longer than the answer")
		}
	})
}
