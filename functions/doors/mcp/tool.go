package mcp

import (
	"context"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/doors/capture"
	"github.com/preheat-dev/preheat/internal/language"
)

// arguments are those of run_code: an execution.Request, described for models.
type arguments struct {
	Language    string            `json:"language" jsonschema:"The language of the program."`
	Code        string            `json:"code" jsonschema:"The whole program."`
	Stdin       string            `json:"stdin,omitempty" jsonschema:"What the program reads from standard input."`
	StdinBase64 string            `json:"stdin_base64,omitempty" jsonschema:"Standard input as base64, in place of stdin, for bytes that are not text."`
	Args        []string          `json:"args,omitempty" jsonschema:"The program's arguments."`
	Env         map[string]string `json:"env,omitempty" jsonschema:"More environment variables."`
	Files       []file            `json:"files,omitempty" jsonschema:"Files that are written to the working directory before the program starts."`
	Limits      limits            `json:"limits,omitzero" jsonschema:"Limits, where the server's defaults do not fit."`
	Pool        string            `json:"pool,omitempty" jsonschema:"A warm pool by name. Leave it out unless somebody asks for one."`
}

type file struct {
	Path     string `json:"path" jsonschema:"The path below the working directory, such as data/input.csv."`
	Content  string `json:"content" jsonschema:"The content, as text or as base64."`
	Encoding string `json:"encoding,omitempty" jsonschema:"How the content is written."`
}

type limits struct {
	TimeoutSeconds   float64 `json:"timeout_seconds,omitempty" jsonschema:"The program's time in seconds."`
	OutputBytes      int64   `json:"output_bytes,omitempty" jsonschema:"How many bytes of each output stream are kept."`
	TotalOutputBytes int64   `json:"total_output_bytes,omitempty" jsonschema:"How many bytes the program may write to each output stream before it is ended."`
	MemoryBytes      int64   `json:"memory_bytes,omitempty" jsonschema:"The program's memory in bytes."`
}

func (a *arguments) request() execution.Request {
	r := execution.Request{
		Language: a.Language, Code: a.Code, Stdin: a.Stdin, StdinBase64: a.StdinBase64, Args: a.Args, Env: a.Env,
		Limits: execution.Limits(a.Limits), Pool: a.Pool,
	}
	for _, f := range a.Files {
		r.Files = append(r.Files, execution.File(f))
	}
	return r
}

// runCode describes the tool.
func runCode() *mcp.Tool {
	no := false
	return &mcp.Tool{
		Name: "run_code", Title: "Run code", InputSchema: schemaOf[arguments](), OutputSchema: schemaOf[output](),
		Description: "Run a program in a fresh sandbox and get what it printed, the figures and tables that it showed and the files that it wrote. " +
			"Nothing is kept between calls: each program must contain everything that it needs. There is no network. Print what you want to see.",
		Annotations: &mcp.ToolAnnotations{Title: "Run code", DestructiveHint: &no, OpenWorldHint: &no},
	}
}

// schemaOf returns the schema of a type of this file, without null where Go's
// types have nil: not all clients know lists of types.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("the schema of a tool: %v", err)) // of a type in this package
	}
	narrow(s)
	if languages := s.Properties["language"]; languages != nil {
		for _, name := range language.Names() {
			languages.Enum = append(languages.Enum, name)
		}
	}
	if files := s.Properties["files"]; files != nil {
		files.Items.Properties["encoding"].Enum = []any{execution.EncodingUTF8, execution.EncodingBase64}
	}
	return s
}

// narrow takes null away from lists.
func narrow(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" && s.Types[1] == "array" {
		s.Type, s.Types = "array", nil
	}
	for _, p := range s.Properties {
		narrow(p)
	}
	narrow(s.Items)
}

// tool runs programs.
type tool struct{ runner capture.Runner }

// run is run_code. What went wrong is a result with isError, which the model
// reads.
func (t *tool) run(ctx context.Context, call *mcp.CallToolRequest, a arguments) (*mcp.CallToolResult, output, error) {
	exchange := exchangeOf(ctx)
	ctx, cancel := exchange.join(ctx)
	defer cancel()
	p := newProgress(ctx, call, exchange)
	o, err := capture.Run(ctx, t.runner, a.request(), p.observer())
	p.stop()
	if err != nil {
		return nil, output{}, fmt.Errorf("the call was cancelled: %w", err)
	}
	return &mcp.CallToolResult{Content: contents(o), IsError: !o.Complete()}, outputOf(o), nil
}
