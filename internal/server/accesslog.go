package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

func (x *exchange) level() slog.Level {
	switch {
	case slices.Contains(x.server.config.Quiet, x.request.URL.Path):
		return slog.LevelDebug
	case x.response.status >= http.StatusInternalServerError:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// entry is the exchange's line in the access log.
func (x *exchange) entry() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("method", x.request.Method), slog.String("path", execution.LoggedPath(x.request.URL.Path)), slog.Int("status", x.response.status),
		slog.Float64("duration_ms", float64(time.Since(x.start).Microseconds())/1000),
		slog.Int64("bytes_in", x.body.received), slog.Int64("bytes_out", x.response.sent),
		slog.String("remote", x.request.RemoteAddr), slog.Bool("streamed", x.streamed),
	}
	var p *execution.Problem
	switch {
	case errors.As(x.err, &p):
		// Its detail may quote the request.
		attrs = append(attrs, slog.String("problem", p.Type))
	case x.err != nil:
		attrs = append(attrs, slog.String("error", x.err.Error()))
	}
	if r := x.conn.refused; r != nil {
		attrs = append(attrs, slog.String("refused", r.detail))
	}
	if errors.Is(context.Cause(x.ctx), ErrPeerGone) {
		attrs = append(attrs, slog.Bool("client_gone", true))
	}
	return attrs
}
