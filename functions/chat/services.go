package chat

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat/relay"
	"github.com/preheat-dev/preheat/internal/server"
)

// Service is one of the platform's own Knative Services, as GET /v1/services
// shows it.
type Service struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	// Problem says why it is not ready, as far as the cluster knows.
	Problem string `json:"problem"`
	URL     string `json:"url"`
	// Revision is the latest one that became ready, and Replicas are its.
	Revision string `json:"revision"`
	Replicas int    `json:"replicas"`
}

// ServiceLister lists the platform's Services by name. It is asked by many at
// once, and often.
type ServiceLister interface {
	Services(ctx context.Context) ([]Service, error)
}

// serviceList is the body of GET /v1/services.
type serviceList struct {
	Services []Service `json:"services"`
}

// listServices answers GET /v1/services. Without a cluster there are none.
func (c *Chat) listServices(f *fiber.Ctx) error {
	f.Set(fiber.HeaderCacheControl, "no-store")
	list := serviceList{Services: []Service{}}
	if c.services == nil {
		return f.JSON(list)
	}
	ctx := server.Context(f)
	found, err := c.services.Services(ctx)
	switch {
	case err != nil && relay.IsCallers(context.Cause(ctx)):
		return context.Cause(ctx)
	case err != nil:
		server.Logger(ctx).Warn("the Knative Services are not known", "error", relay.Redact(err))
		return execution.NewProblem(execution.ProblemUpstream, "The cluster does not say how the Knative Services stand.")
	}
	list.Services = append(list.Services, found...)
	return f.JSON(list)
}
