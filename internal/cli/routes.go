package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

// routes say how to reach each host of the inventory.
type routes struct {
	resolver *sshconn.Resolver
	options  map[string]route

	mu    sync.Mutex
	found map[string]sshconn.Config
}

// route is what the inventory and the flags say of one host, or why that cannot be honoured.
type route struct {
	options sshconn.Options
	err     error
}

func newRoutes(r *sshconn.Resolver, f *fleetFlags, hosts []inventory.Host, args []string, password []byte) *routes {
	all := map[string]route{}
	for _, h := range hosts {
		o, err := options(f, h, args, password)
		all[h.Name] = route{o, err}
	}
	return &routes{resolver: r, options: all, found: map[string]sshconn.Config{}}
}

// config says how to reach one host.
func (r *routes) config(ctx context.Context, host string) (sshconn.Config, error) {
	r.mu.Lock()
	known, ok := r.found[host]
	r.mu.Unlock()
	if ok {
		return known, nil
	}
	said, ok := r.options[host]
	switch {
	case !ok:
		return sshconn.Config{}, errors.New("no such host in the inventory")
	case said.err != nil:
		return sshconn.Config{}, said.err
	}
	cfg, err := r.resolver.Resolve(ctx, said.options)
	if err != nil {
		return sshconn.Config{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found[host] = cfg
	return cfg, nil
}

// via is the jump host that connections to a host go through first. Hosts that were not selected are resolved only
// when they are dialed, so theirs is not known here.
func (r *routes) via(host string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if jump := r.found[host].Jump; len(jump) > 0 {
		return fmt.Sprintf("%s:%d", jump[0].Address, jump[0].Port)
	}
	return ""
}

// resolve finds out for many hosts at a time, and refuses all at once what cannot be honoured for one of them.
func (r *routes) resolve(ctx context.Context, hosts []inventory.Host) error {
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, h := range hosts {
		wg.Go(func() { _, errs[i] = r.config(ctx, h.Name) })
	}
	wg.Wait()
	var causes []string // in the order of the hosts
	named := map[string][]string{}
	for i, err := range errs {
		if err == nil {
			continue
		}
		var refused *sshconn.ResolveError
		cause := err.Error()
		if errors.As(err, &refused) {
			cause = refused.Err.Error()
		}
		if named[cause] == nil {
			causes = append(causes, cause)
		}
		named[cause] = append(named[cause], hosts[i].Name)
	}
	if len(causes) == 0 {
		return nil
	}
	lines := make([]string, 0, len(causes))
	for _, cause := range causes {
		lines = append(lines, fmt.Sprintf("cannot tell how to reach %s: %s", some(named[cause]), cause))
	}
	return fail(exitUsage, "", "%s", strings.Join(lines, "\n"))
}
