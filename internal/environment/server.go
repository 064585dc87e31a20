package environment

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"
)

// Server is how a program listens and logs.
type Server struct {
	// Listen is host:port. Where PORT is set, as Knative does, it is every
	// address at that port by default, and else one on loopback.
	Listen string
	// AllowedHosts and AllowedOrigins say which requests get through. By
	// default those for loopback names do, and with PORT those for any host.
	AllowedHosts   []string
	AllowedOrigins []string
	// ShutdownGrace is how long requests may go on after SIGTERM.
	ShutdownGrace time.Duration `envDefault:"10s"`
	// MemoryBudgetMIB bounds what requests and results hold together; by
	// default it is a share of what the process may use, see package budget.
	MemoryBudgetMIB int64
	LogLevel        slog.Level `envDefault:"info"`
}

// Locate fills in what Listen and AllowedHosts are by default. standard is the
// address for a program that nobody gave a port.
func (s *Server) Locate(standard string) error {
	port := os.Getenv("PORT")
	switch {
	case s.Listen != "":
		if _, _, err := net.SplitHostPort(s.Listen); err != nil {
			return fmt.Errorf("PREHEAT_LISTEN is not host:port: %w", err)
		}
	case port != "":
		if _, err := netip.ParseAddrPort("0.0.0.0:" + port); err != nil {
			return errors.New("PORT is not a port number")
		}
		s.Listen = "0.0.0.0:" + port
	default:
		s.Listen = standard
	}
	if port != "" && len(s.AllowedHosts) == 0 {
		s.AllowedHosts = []string{"*"}
	}
	return nil
}
