// Package piston is the door for clients of Piston, an execution engine whose
// second interface many bots and editors speak:
//
//	GET  /api/v2/runtimes, /api/v2/packages
//	POST /api/v2/execute
//
// A program takes all its input before it starts, so there is no interactive
// /api/v2/connect. Nothing is compiled ahead, so limits of compilation have no
// effect.
package piston

import (
	"context"
	"errors"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/doors/capture"
	"github.com/preheat-dev/preheat/internal/server"
)

// Runner runs programs in the languages that it lists. It is a *client.Client.
type Runner interface {
	capture.Runner
	Languages(ctx context.Context) ([]execution.Language, error)
}

// Door serves the interface.
type Door struct {
	runner   Runner
	runtimes *runtimes
}

// New returns the door, which serves once it is registered.
func New(runner Runner) *Door {
	return &Door{runner: runner, runtimes: newRuntimes(runner.Languages)}
}

// Register adds the routes.
func (d *Door) Register(r fiber.Router) {
	api := r.Group("/api/v2")
	api.Get("/runtimes", d.listRuntimes)
	api.Get("/packages", d.listPackages)
	api.Post("/packages", noPackages)
	api.Delete("/packages", noPackages)
	api.Post("/execute", d.execute)
}

func (d *Door) listRuntimes(f *fiber.Ctx) error {
	all, err := d.runtimes.list(server.Context(f))
	if err != nil {
		return d.refuse(f, err)
	}
	return f.JSON(all)
}

func (d *Door) listPackages(f *fiber.Ctx) error {
	all, err := d.runtimes.list(server.Context(f))
	if err != nil {
		return d.refuse(f, err)
	}
	packages := make([]pack, 0, len(all))
	for _, r := range all {
		packages = append(packages, pack{r.Language, r.Version, true})
	}
	return f.JSON(packages)
}

// pack is one entry of GET /packages.
type pack struct {
	Language  string `json:"language"`
	Version   string `json:"language_version"`
	Installed bool   `json:"installed"`
}

func noPackages(f *fiber.Ctx) error {
	return f.Status(http.StatusNotImplemented).JSON(message{"languages belong to the sandbox image: they cannot be installed or removed here"})
}

// message is the body of an error.
type message struct {
	Message string `json:"message"`
}

func (d *Door) execute(f *fiber.Ctx) error {
	// One client says text/plain of its JSON.
	switch media := f.Get(fiber.HeaderContentType); {
	case server.RequireJSON(f) == nil, isPlain(media):
	default:
		return f.Status(http.StatusUnsupportedMediaType).JSON(message{"requests must be of type application/json"})
	}
	body, err := server.Body(f)
	if err != nil {
		return d.refuse(f, err)
	}
	ctx := server.Context(f)
	j, err := decode(body)
	if err != nil {
		return d.refuse(f, err)
	}
	found, err := d.runtimes.find(ctx, j.language, j.version)
	if err != nil {
		return d.refuse(f, err)
	}
	// Observed, so that both streams are in order.
	outcome, err := capture.Run(ctx, d.runner, j.request(found), capture.Observer{Output: func(execution.Stream, []byte) {}})
	if err != nil {
		return err
	}
	if p := outcome.Problem; p != nil && outcome.Exit.SandboxName == "" {
		return d.refuse(f, p)
	}
	f.Set(fiber.HeaderCacheControl, "no-store")
	return f.JSON(answer{Run: stageOf(outcome), Language: found.Language, Version: found.Version})
}

// refuse answers with an error as clients read it. What is wrong with a
// request is 400 whatever it is.
func (d *Door) refuse(f *fiber.Ctx, err error) error {
	var bad *badRequest
	if errors.As(err, &bad) {
		return f.Status(http.StatusBadRequest).JSON(message{bad.message})
	}
	var problem *execution.Problem
	if !errors.As(err, &problem) {
		server.Logger(server.Context(f)).Warn("the languages are not known", "error", err)
		problem = execution.NewProblem(execution.ProblemUpstream, "What executes programs cannot be reached.")
	}
	own := *problem
	own.Detail, own.Field = renamed(problem), "" // the server makes the message of them
	switch own.Status {
	case http.StatusNotFound, http.StatusUnprocessableEntity:
		own.Status = http.StatusBadRequest
	}
	return &own
}
