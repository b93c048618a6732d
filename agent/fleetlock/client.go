package fleetlock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The pauses between two tries: doubled each time up to the last.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
	// askLimit bounds one request. A server may hold it back while its own store is slow.
	askLimit = time.Minute
)

// Client takes and gives back one slot. Both requests may be repeated: to lock twice with the same id is to hold
// one slot, to unlock without holding is no error.
type Client struct {
	URL   string // base, as Zincati's base_url: with or without a slash at its end
	Group string // "": DefaultGroup
	ID    string // whose slot it is; unique in the group, and stable, so that a lost slot can be found and given back
	HTTP  *http.Client
	// Waiting, if any, is told of every refusal that is tried again, and after which pause.
	Waiting func(*Error, time.Duration)
	// Pause waits, for tests; nil: by the clock. It returns early when the context ends.
	Pause func(context.Context, time.Duration)
}

// Lock takes a slot, and waits for one as long as ctx permits. The error is or wraps an *Error with the last
// refusal; when ctx has ended, it wraps that as well.
func (c Client) Lock(ctx context.Context) error { return c.insist(ctx, "take a slot of", PreReboot) }

// Unlock gives the slot back; it is tried again as Lock is. Give it a context that still lives when the walk was
// interrupted: a slot has no end of its own.
func (c Client) Unlock(ctx context.Context) error {
	return c.insist(ctx, "give back the slot of", SteadyState)
}

// TryLock asks once. An error that is an *Error with Again() true may be asked again.
func (c Client) TryLock(ctx context.Context) error { return c.ask(ctx, PreReboot) }

func (c Client) identity() Identity {
	group := c.Group
	if group == "" {
		group = DefaultGroup
	}
	return Identity{ID: c.ID, Group: group}
}

func (c Client) insist(ctx context.Context, verb, path string) error {
	who := c.identity()
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		err := c.ask(ctx, path)
		if err == nil {
			return nil
		}
		var refusal *Error
		if !errors.As(err, &refusal) || !refusal.Again() {
			return fmt.Errorf("cannot %s group %s at %s for %s: %w", verb, who.Group, c.URL, who.ID, err)
		}
		if ctx.Err() == nil {
			if c.Waiting != nil {
				c.Waiting(refusal, wait)
			}
			c.pause(ctx, wait)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("cannot %s group %s at %s for %s: %w: %w", verb, who.Group, c.URL, who.ID, ctx.Err(), err)
		}
	}
}

func (c Client) pause(ctx context.Context, d time.Duration) {
	if c.Pause != nil {
		c.Pause(ctx, d)
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// ask sends one request.
func (c Client) ask(ctx context.Context, path string) error {
	who := c.identity()
	if err := who.Check(); err != nil {
		return fmt.Errorf("cannot use this FleetLock client: %w", err)
	}
	at, err := endpoint(c.URL, path)
	if err != nil {
		return err
	}
	data, err := json.Marshal(body{Params: &who})
	if err != nil {
		return fmt.Errorf("cannot encode the request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("cannot make the request: %w", err)
	}
	req.Header.Set(Header, "true")
	req.Header.Set("content-type", "application/json")
	web := c.HTTP
	if web == nil {
		// A redirect would turn the POST into a GET and look like success.
		web = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	answer, err := web.Do(req)
	if err != nil {
		return &Error{Kind: KindNoAnswer, Value: "no answer: " + err.Error(), Err: err}
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return readError(answer.StatusCode, answer.Body)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxBody)) // so that the connection can be used again
	return nil
}

// endpoint appends a request to the base URL, whose last part counts with or without a slash.
func endpoint(base, path string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("cannot use FleetLock URL: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("cannot use FleetLock URL %q: it must be http:// or https://, a host and a path", u.Redacted())
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/" + path
	return u.String(), nil
}
