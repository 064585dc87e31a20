package httpapi

import (
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/internal/server"
)

// registerSessions adds the routes of sessions.
func (a *API) registerSessions(r fiber.Router) {
	r.Post("/v1/sessions", a.openSession)
	r.Get("/v1/sessions", a.listSessions)
	r.Get("/v1/sessions/:id", a.withSession(getSession))
	r.Delete("/v1/sessions/:id", a.endSession)
	r.Post("/v1/sessions/:id/execute", a.withSession(a.executeInSession))
	r.Post("/v1/sessions/:id/interrupt", a.withSession(interrupt))
	r.Get("/v1/sessions/:id/files", a.withSession(listFiles))
	r.Get("/v1/sessions/:id/files/*", a.withSession(a.getFile))
	r.Put("/v1/sessions/:id/files/*", a.withSession(a.putFile))
	r.Delete("/v1/sessions/:id/files/*", a.withSession(removeFile))
}

// withSession calls h with the session that the path names.
func (a *API) withSession(h func(*fiber.Ctx, *execute.Session) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderCacheControl, "no-store")
		s, err := a.executor.Session(server.Context(c), c.Params("id"))
		if err != nil {
			return err
		}
		return h(c, s)
	}
}

// openSession answers POST /v1/sessions.
func (a *API) openSession(c *fiber.Ctx) error {
	body, err := a.jsonBody(c)
	if err != nil {
		return err
	}
	request, problem := execution.DecodeSession(body)
	if problem != nil {
		return problem
	}
	spec, problem := a.executor.CheckSession(&request)
	if problem != nil {
		return problem
	}
	s, err := a.executor.OpenSession(server.Context(c), server.RequestID(c), spec)
	if err != nil {
		return err
	}
	d, err := s.Describe(server.Context(c))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderLocation, "/v1/sessions/"+d.ID)
	return c.Status(http.StatusCreated).JSON(d)
}

// jsonBody returns c's body, which must be declared as JSON and no larger than
// a request may be.
func (a *API) jsonBody(c *fiber.Ctx) ([]byte, error) {
	if err := server.RequireJSON(c); err != nil {
		return nil, err
	}
	return a.Body(c)
}

// listSessions answers GET /v1/sessions.
func (a *API) listSessions(c *fiber.Ctx) error {
	list, err := a.executor.Sessions(server.Context(c))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(fiber.Map{"sessions": list})
}

// getSession answers GET /v1/sessions/ID.
func getSession(c *fiber.Ctx, s *execute.Session) error {
	d, err := s.Describe(server.Context(c))
	if err != nil {
		return err
	}
	return c.JSON(d)
}

// endSession answers DELETE /v1/sessions/ID.
func (a *API) endSession(c *fiber.Ctx) error {
	if err := a.executor.EndSession(server.Context(c), c.Params("id")); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// interrupt answers POST /v1/sessions/ID/interrupt.
func interrupt(c *fiber.Ctx, s *execute.Session) error {
	if err := s.Interrupt(server.Context(c)); err != nil {
		return err
	}
	c.Status(http.StatusAccepted)
	return nil
}

// executeInSession answers POST /v1/sessions/ID/execute.
func (a *API) executeInSession(c *fiber.Ctx, s *execute.Session) error {
	body, err := a.jsonBody(c)
	if err != nil {
		return err
	}
	request, problem := execution.Decode(body)
	if problem != nil {
		return problem
	}
	p, problem := s.Check(&request)
	if problem != nil {
		return problem
	}
	ctx, id := server.Context(c), server.RequestID(c)
	if server.WantsEvents(c) {
		if server.Resumes(c) {
			return server.NothingToResume(c)
		}
		return a.stream(ctx, c, p.Language, func(q *queue) error {
			result, err := s.Execute(ctx, id, p, q)
			err = attributeShutdown(ctx, &result.Result, err)
			q.close(sessionExit(result, err, id))
			return err
		})
	}
	result, err := s.Execute(ctx, id, p, nil)
	if _, err = Finalize(ctx, &result.Result, err); err != nil {
		return err
	}
	return server.Encode(c, execution.MediaJSON, result.Encode)
}

// sessionExit is the terminal event of a run in a session.
func sessionExit(r *execution.SessionResult, err error, id string) execution.SessionExit {
	x := execution.SessionExit{Exit: exitOf(&r.Result, err, id)}
	if r.State != "" {
		x.State, x.Sequence = &r.State, &r.Sequence
	}
	return x
}
