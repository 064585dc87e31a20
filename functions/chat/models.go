package chat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat/demo"
	"github.com/preheat-dev/preheat/functions/chat/openai"
)

// models answers GET /v1/models.
func (c *Chat) models(f *fiber.Ctx) error {
	if e := c.instance.Loop(f); e != nil {
		return e.Send(f)
	}
	t := c.target.Load()
	if t == nil {
		return f.JSON(modelList{Object: "list", Demo: true, Data: []model{demoModel}})
	}
	return c.forward(f, t, modelRequest{method: http.MethodGet, path: "models"})
}

// modelByID answers GET /v1/models/{id} from the list: every model server has
// one, and not each of them answers for one model.
func (c *Chat) modelByID(f *fiber.Ctx) error {
	if e := c.instance.Loop(f); e != nil {
		return e.Send(f)
	}
	id, err := url.PathUnescape(f.Params("*"))
	if err != nil || id == "" {
		return execution.NewProblem(execution.ProblemNotFound, "There is nothing at this path.")
	}
	t := c.target.Load()
	if t == nil {
		if id == demo.Model {
			return f.JSON(demoModel)
		}
		return errNoModel(id).Send(f)
	}
	x, err := c.begin(f, t, modelRequest{method: http.MethodGet, path: "models"})
	if x == nil {
		return err
	}
	defer x.end()
	body, err := x.read(c.config.LLM.IdleTimeout)
	if err != nil {
		return c.unanswered(f, x.seen, err)
	}
	var list struct{ Data []json.RawMessage }
	if x.StatusCode != http.StatusOK || json.Unmarshal(body, &list) != nil {
		return errNotOpenAI(x.StatusCode, body).Send(f)
	}
	for _, object := range list.Data {
		var m struct{ ID string }
		if json.Unmarshal(object, &m) == nil && m.ID == id {
			f.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
			return f.Send(object)
		}
	}
	return errNoModel(id).Send(f)
}

// errNoModel is the answer to a request for a model that is not in the list.
func errNoModel(id string) *openai.Error {
	param := "model"
	e := openai.NewError(http.StatusNotFound, openai.TypeInvalidRequest, "model_not_found", fmt.Sprintf("The model %.100q does not exist.", id))
	e.Param = &param
	return e
}
