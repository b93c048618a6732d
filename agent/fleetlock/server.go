package fleetlock

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// Gate is what decides on a host.
type Gate interface {
	// Permit lets the client reboot now, or fails. To be asked again before Settled must give the same answer.
	Permit(ctx context.Context, who Identity) error
	// Settled says that the client runs steadily, whether it held anything or not.
	Settled(ctx context.Context, who Identity) error
}

// Handler answers FleetLock requests from a host's gate. It serves loopback only: who can reach it, and knows the
// host's id, can use up a window.
type Handler struct{ Gate Gate }

// Kinds of refusals beside "gate_" and one of the gate's codes.
const (
	kindRequest = "invalid_request"
	kindMethod  = "invalid_method"
	kindPath    = "unknown_endpoint"
	kindRemote  = "not_loopback"
	kindGate    = "failed_gate"
)

// ServeHTTP implements http.Handler.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e := h.serve(r); e != nil {
		refuse(w, e)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (h Handler) serve(r *http.Request) *Error {
	action, known := map[string]func(context.Context, Identity) error{
		"/" + PreReboot: h.Gate.Permit, "/" + SteadyState: h.Gate.Settled,
	}[r.URL.Path]
	switch {
	case !loopback(r.RemoteAddr):
		return &Error{Status: http.StatusForbidden, Kind: kindRemote, Value: "only this host may ask"}
	case !known:
		return &Error{Status: http.StatusNotFound, Kind: kindPath, Value: "there is only " + PreReboot + " and " + SteadyState}
	case r.Method != http.MethodPost:
		return &Error{Status: http.StatusMethodNotAllowed, Kind: kindMethod, Value: "the method must be POST"}
	case r.Header.Get(Header) != "true":
		// Keeps web pages out as well: a browser does not send it to another site without asking first.
		return &Error{Status: http.StatusBadRequest, Kind: kindRequest, Value: "the header " + Header + ": true is missing"}
	}
	who, err := readIdentity(r.Body)
	if err != nil {
		return &Error{Status: http.StatusBadRequest, Kind: kindRequest, Value: err.Error()}
	}
	if err := action(r.Context(), who); err != nil {
		var d *gate.Denial
		if errors.As(err, &d) {
			return &Error{Status: http.StatusConflict, Kind: "gate_" + strings.ReplaceAll(d.Code, "-", "_"), Value: d.Reason}
		}
		var e *Error
		if errors.As(err, &e) {
			return e
		}
		return &Error{Status: http.StatusInternalServerError, Kind: kindGate, Value: err.Error()}
	}
	return nil
}

func refuse(w http.ResponseWriter, e *Error) {
	w.Header().Set("content-type", "application/json")
	w.Header().Set("x-content-type-options", "nosniff")
	w.WriteHeader(e.Status)
	data, err := json.Marshal(e)
	if err != nil {
		return // the status says enough
	}
	_, _ = w.Write(append(data, '\n'))
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// Server is an HTTP server for the handler, with bounds for clients that are slow or large.
func (h Handler) Server() *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10}
}

// CheckListen reports what is wrong with an address to listen on: it must be a loopback address with a port.
func CheckListen(address string) error {
	if !loopback(address) {
		return errors.New("FleetLock is served on a loopback address with a port only, such as 127.0.0.1:3333, not on " + address)
	}
	return nil
}
