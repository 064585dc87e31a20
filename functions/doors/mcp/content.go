package mcp

import (
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/doors/capture"
)

// output is run_code's structured content. Figures and files stand in the
// content beside it, once.
type output struct {
	Status       execution.Status    `json:"status" jsonschema:"How the program ended: succeeded, failed, timed_out, out_of_memory, output_limit, cancelled, or platform_error if it was not run to its end."`
	ExitCode     *int                `json:"exit_code" jsonschema:"The program's exit code; null if it is not known."`
	Signal       *string             `json:"signal" jsonschema:"The signal that ended the program, or null."`
	Stdout       string              `json:"stdout" jsonschema:"What the program wrote to standard output."`
	Stderr       string              `json:"stderr" jsonschema:"What the program wrote to standard error."`
	StdoutBase64 *string             `json:"stdout_base64" jsonschema:"The exact bytes of standard output if they are not UTF-8, else null."`
	StderrBase64 *string             `json:"stderr_base64" jsonschema:"The exact bytes of standard error if they are not UTF-8, else null."`
	Truncated    execution.Truncated `json:"truncated" jsonschema:"How much of the output is kept."`
	Results      []shown             `json:"results" jsonschema:"What the program displayed; the data is in the content."`
	Artifacts    []written           `json:"artifacts" jsonschema:"The files that the program wrote; those with a uri are in the content."`
	Notes        []string            `json:"notes" jsonschema:"What else should be known of how the program ended."`
	SandboxName  string              `json:"sandbox_name" jsonschema:"The sandbox, which is gone by now."`
	Usage        execution.Usage     `json:"usage" jsonschema:"What the program used."`
	TimingsMS    execution.Timings   `json:"timings_ms" jsonschema:"Where the time went, in milliseconds."`
}

type shown struct {
	MIME     string `json:"mime"`
	Position int64  `json:"position" jsonschema:"How many bytes of stdout the program had written by then."`
}

type written struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	MIME    string `json:"mime"`
	URI     string `json:"uri,omitempty"`
	Omitted string `json:"omitted,omitempty" jsonschema:"Why the content is left out."`
}

func outputOf(o *capture.Outcome) output {
	x := &o.Exit
	out := output{
		Status: x.Status, ExitCode: x.ExitCode, Signal: x.Signal, Truncated: x.Truncated, SandboxName: x.SandboxName,
		Usage: x.Usage, TimingsMS: x.TimingsMS, Results: []shown{}, Artifacts: []written{}, Notes: o.Explain(),
	}
	out.Stdout, out.StdoutBase64 = execution.Text(o.Stdout.Data)
	out.Stderr, out.StderrBase64 = execution.Text(o.Stderr.Data)
	for _, r := range o.Results {
		out.Results = append(out.Results, shown{MIME: r.MIME, Position: r.Position})
	}
	for _, a := range o.Artifacts {
		w := written{Path: a.Path, Size: a.Size, MIME: a.MIME, Omitted: a.Omitted}
		if a.Omitted == "" {
			w.URI = uri(x.SandboxName, a.Path)
		}
		out.Artifacts = append(out.Artifacts, w)
	}
	if out.Notes == nil {
		out.Notes = []string{}
	}
	return out
}

// contents is what clients show and models read.
func contents(o *capture.Outcome) []mcp.Content {
	all := []mcp.Content{&mcp.TextContent{Text: text(o)}}
	for _, r := range o.Results {
		all = append(all, result(o.Exit.SandboxName, r)...)
	}
	for _, a := range o.Artifacts {
		if a.Omitted == "" {
			all = append(all, resource(uri(o.Exit.SandboxName, a.Path), a.MIME, a.Content, a.Encoding == execution.EncodingBase64))
		}
	}
	return all
}

// text is what the program wrote, and in words what that does not say.
func text(o *capture.Outcome) string {
	var parts []string
	if out := o.Stdout.Text(); out != "" {
		parts = append(parts, out)
	}
	if err := o.Stderr.Text(); err != "" {
		parts = append(parts, "stderr:\n"+err)
	}
	if said := o.Explain(); len(said) > 0 {
		parts = append(parts, strings.Join(said, "\n"))
	}
	if len(parts) == 0 {
		return "The program succeeded and wrote nothing."
	}
	return strings.Join(parts, "\n")
}

// result is a displayed value. HTML is a resource: no client takes it for text
// that it may render.
func result(sandbox string, r execution.RichResult) []mcp.Content {
	represented := append([]execution.Representation{{MIME: r.MIME, Data: r.Data}}, r.Alternatives...)
	var all []mcp.Content
	for i, x := range represented {
		media, _, _ := strings.Cut(x.MIME, ";")
		switch {
		case media == "text/plain" || media == "text/markdown" || media == "application/json" && i == 0:
			all = append(all, &mcp.TextContent{Text: x.Data})
		case strings.HasPrefix(media, "image/") && !execution.IsTextMIME(media):
			data, err := base64.StdEncoding.DecodeString(x.Data)
			if err == nil {
				all = append(all, &mcp.ImageContent{MIMEType: media, Data: data})
				continue
			}
			all = append(all, &mcp.TextContent{Text: "[an image of type " + media + " that is not base64]"})
		case i == 0:
			all = append(all, resource(uri(sandbox, "results/"+media), x.MIME, x.Data, !execution.IsTextMIME(media)))
		}
	}
	return all
}

func resource(uri, media, content string, encoded bool) *mcp.EmbeddedResource {
	c := &mcp.ResourceContents{URI: uri, MIMEType: media}
	if !encoded {
		c.Text = content
		return &mcp.EmbeddedResource{Resource: c}
	}
	data, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		c.Text = content
		return &mcp.EmbeddedResource{Resource: c}
	}
	c.Blob = data
	return &mcp.EmbeddedResource{Resource: c}
}

// uri names a file of a sandbox. Nothing can be read by it: the content is with it.
func uri(sandbox, path string) string {
	u := url.URL{Scheme: "sandbox", Host: sandbox, Path: "/" + path}
	return u.String()
}
