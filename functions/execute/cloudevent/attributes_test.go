package cloudevent

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/preheat-dev/preheat/api/execution"
)

const document = `{"language":"python","code":"1"}`

// posted calls f with a request of the given headers, as name: value, and body.
func posted(t *testing.T, headers, body string, f func(*fiber.Ctx)) {
	t.Helper()
	app := fiber.New()
	var raw fasthttp.RequestCtx
	raw.Request.Header.SetMethod(fiber.MethodPost)
	for line := range strings.Lines(headers) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("header %q", line)
		}
		raw.Request.Header.Set(name, value)
	}
	raw.Request.SetBodyString(body)
	c := app.AcquireCtx(&raw)
	defer app.ReleaseCtx(c)
	f(c)
}

const binary = "ce-specversion: 1.0\nce-id: 1\nce-source: /s\nce-type: t\n"

// CASES.md W4: what a request may look like as an event.
func TestReadEvent(t *testing.T) {
	quoted := `"{\"language\":\"python\",\"code\":\"1\"}"`
	base := base64.StdEncoding.EncodeToString([]byte(document))
	for name, test := range map[string]struct{ headers, body string }{
		"binary":                  {binary + "Content-Type: application/json", document},
		"binary, without type":    {binary, document},
		"binary, text":            {binary + "Content-Type: text/plain; charset=utf-8", document},
		"binary, JSON suffix":     {binary + "Content-Type: application/vnd.x+json", document},
		"binary, extensions":      {binary + "ce-partitionkey: ä%20\nce-a1: x\ntraceparent: 00-1", document},
		"binary, with time":       {binary + "ce-time: 2026-01-01T00:00:00.5+01:00", document},
		"type and source swapped": {"ce-specversion: 1.0\nce-id: 1\nce-source: t.u\nce-type: /s", document},
		"encoded twice":           {binary + "Content-Type: application/json", quoted},
		"structured":              {structuredType, structured(`"data":` + document)},
		"structured, charset":     {structuredType + "; charset=UTF-8", structured(`"data":` + document)},
		"structured, other case":  {"Content-Type: Application/CloudEvents+JSON", structured(`"data":` + document)},
		"structured, string":      {structuredType, structured(`"data":` + quoted)},
		"structured, text":        {structuredType, structured(`"datacontenttype":"text/plain","data":` + quoted)},
		"structured, base64":      {structuredType, structured(`"data_base64":"` + base + `"`)},
		"structured, spaced":      {structuredType, " { \"specversion\" :\n\"1.0\", \"data_base64\" : \"" + base + "\" , \"id\": \"1\", \"source\": \"/s\", \"type\": \"t\" } "},
		"data comes first":        {structuredType, `{"data":` + document + `,"type":"t","source":"/s","id":"1","specversion":"1.0"}`},
		"structured, JSON suffix": {structuredType, structured(`"datacontenttype":"application/vnd.x+json","data":` + document)},
		"structured, null type":   {structuredType, structured(`"datacontenttype":null,"time":null,"data":` + document)},
		"structured, small time":  {structuredType, structured(`"time":"2026-01-01t00:00:00z","data":` + document)},
		"extension kinds":         {structuredType, structured(`"a":1,"b":true,"c":"x","d":null,"subject":null,"data":` + document)},
		// The content type decides: the headers are another event's.
		"structured, with headers": {binary + "ce-time: never\n" + structuredType, structured(`"data":` + document)},
	} {
		t.Run(name, func(t *testing.T) {
			posted(t, test.headers, test.body, func(c *fiber.Ctx) {
				isStructured := strings.Contains(strings.ToLower(test.headers), "cloudevents+json")
				e, problem := readEvent(c, []byte(test.body), isStructured)
				if problem != nil {
					t.Fatalf("%s: %s", problem.Field, problem.Detail)
				}
				if got := string(unquoted(e.Data())); got != document || e.ID() != "1" {
					t.Errorf("id %q, data %s", e.ID(), got)
				}
			})
		})
	}
}

const structuredType = "Content-Type: application/cloudevents+json"

func structured(members string) string {
	return `{"specversion":"1.0","id":"1","source":"/s","type":"t",` + members + `}`
}

func TestReadEventRefuses(t *testing.T) {
	without := func(attribute string) string {
		var lines []string
		for line := range strings.Lines(binary) {
			if !strings.HasPrefix(line, "ce-"+attribute+":") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	for name, test := range map[string]struct{ headers, body, field string }{
		"no version":                      {without("specversion"), document, "specversion"},
		"no id":                           {without("id"), document, "id"},
		"no source":                       {without("source"), document, "source"},
		"no type":                         {without("type"), document, "type"},
		"structured, 0.3, panics the SDK": {structuredType, `{"specversion":"0.3","id":"1","source":"/s","type":"t","datacontentencoding":"base64","data":1}`, "specversion"},
		"unknown version":                 {strings.Replace(binary, "1.0", "2.0", 1), document, "specversion"},
		"source is no URI":                {strings.Replace(binary, "/s", "http://[", 1), document, "source"},
		"time is no time":                 {binary + "ce-time: yesterday", document, "time"},
		"name of an extension":            {binary + "ce-a_b: x", document, "a_b"},
		"no data":                         {binary, "", "data"},
		"image":                           {binary + "Content-Type: image/png", document, "datacontenttype"},
		"content type":                    {binary + "Content-Type: ;", document, "datacontenttype"},
		"not JSON":                        {structuredType, `{"specversion":`, ""},
		"not an object":                   {structuredType, `[]`, ""},
		"repeated":                        {structuredType, structured(`"id":"2"`), "id"},
		"nothing":                         {structuredType, ``, ""},
		"structured, no version":          {structuredType, `{"id":"1","source":"/s","type":"t","data":` + document + `}`, "specversion"},
		"structured, old version":         {structuredType, `{"specversion":"0.1","id":"1","source":"/s","type":"t"}`, "specversion"},
		"structured, no id":               {structuredType, `{"specversion":"1.0","source":"/s","type":"t"}`, "id"},
		"structured, empty id":            {structuredType, `{"specversion":"1.0","id":"","source":"/s","type":"t"}`, "id"},
		"structured, null id":             {structuredType, `{"specversion":"1.0","id":null,"source":"/s","type":"t"}`, "id"},
		"id is a number":                  {structuredType, `{"specversion":"1.0","id":1,"source":"/s","type":"t"}`, "id"},
		"version is a number":             {structuredType, `{"specversion":1.0,"id":"1","source":"/s","type":"t"}`, "specversion"},
		"data_base64 is a number":         {structuredType, structured(`"data_base64":1`), "data_base64"},
		"data_base64 is text":             {structuredType, structured(`"data_base64":"%"`), "data_base64"},
		"extension is an object":          {structuredType, structured(`"a":{},"data":1`), "a"},
		"member without a name":           {structuredType, structured(`"":1,"data":1`), ""},
		"structured, time":                {structuredType, structured(`"time":"x","data":1`), "time"},
		"structured, content type":        {structuredType, structured(`"datacontenttype":"text/xml","data":"<a/>"`), "datacontenttype"},
		"text that is an object":          {structuredType, structured(`"datacontenttype":"text/plain","data":` + document), "data"},
		"structured, no data":             {structuredType, structured(`"a":1`), "data"},
		"extension is a fraction":         {structuredType, structured(`"a":1.5,"data":1`), "a"},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, test.headers, test.body, test.field) })
	}
}

// What the specifications forbid, and the SDK would take.
func TestReadEventIsStrict(t *testing.T) {
	for name, test := range map[string]struct{ headers, body, field string }{
		"binary, content type twice":    {binary + "Content-Type: application/json\nce-datacontenttype: application/json", document, "datacontenttype"},
		"binary, not UTF-8":             {binary + "ce-subject: %C0%A0", document, "subject"},
		"binary, control character":     {binary + "ce-mine: a%0Ab", document, "mine"},
		"binary, latin 1":               {binary + "Content-Type: application/json; charset=iso-8859-1", document, "datacontenttype"},
		"binary, attribute named data":  {binary + "ce-data: x", document, "data"},
		"structured, control character": {structuredType, structured(`"mine":"a\u0000","data":1`), "mine"},
		"structured, noncharacter":      {structuredType, structured(`"mine":"a\ufffe","data":1`), "mine"},
		"structured, upper case":        {structuredType, structured(`"Mine":"a","data":1`), "Mine"},
		"structured, attribute again":   {structuredType, structured(`"ID":"2","data":1`), "ID"},
		"structured, null base64":       {structuredType, structured(`"data_base64":null`), "data_base64"},
		"structured, data twice":        {structuredType, structured(`"data_base64":"e30=","data":null`), "data_base64"},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, test.headers, test.body, test.field) })
	}
}

// refuses checks that an event is refused because of a field.
func refuses(t *testing.T, headers, body, field string) {
	t.Helper()
	posted(t, headers, body, func(c *fiber.Ctx) {
		e, problem := readEvent(c, []byte(body), strings.Contains(headers, "cloudevents+json"))
		if problem == nil {
			t.Fatalf("accepted: %v", e)
		}
		if problem.Status != 400 || problem.Field != field || problem.Detail == "" || !problem.IsKind(execution.ProblemMalformed) {
			t.Errorf("%d, field %q: %s", problem.Status, problem.Field, problem.Detail)
		}
	})
}

func TestUnquoted(t *testing.T) {
	for document, want := range map[string]string{
		`{"a":"b"}`: `{"a":"b"}`, `"{\"a\":\"\u20ac\"}"`: `{"a":"€"}`, " \"x\" \n": "x", `"\ud800"`: `"\ud800"`, `"x`: `"x`, ``: ``, `"a" "b"`: `"a" "b"`,
	} {
		if got := string(unquoted([]byte(document))); got != want {
			t.Errorf("%s became %s", document, got)
		}
	}
}

// No event makes the server panic, and what is refused is the sender's
// mistake, said in few words.
func FuzzReadEvent(f *testing.F) {
	f.Add(structured(`"data":` + document))
	f.Add(structured(`"data_base64":"e30=","time":"2026-01-01T00:00:00Z"`))
	f.Add(structured(`"datacontenttype":"text/plain","data":"{}","a":1,"b":true,"dataschema":"http://[","subject":""`))
	f.Add(`{"specversion":"0.3","id":"1","source":"/s","type":"t","datacontentencoding":"base64","data":"e30=","schemaurl":":"}`)
	f.Add(`{"data_base64":1,"specversion":"1.0"}`)
	f.Fuzz(func(t *testing.T, body string) {
		posted(t, structuredType, body, func(c *fiber.Ctx) {
			e, problem := readEvent(c, []byte(body), true)
			switch {
			case problem == nil && (e == nil || e.ID() == "" || len(e.Data()) == 0):
				t.Errorf("accepted as %v", e)
			case problem != nil && (problem.Status != 400 || problem.Detail == "" || len(problem.Detail)+len(problem.Field) > 2000):
				t.Errorf("%d, field %q: %.100s", problem.Status, problem.Field, problem.Detail)
			}
		})
	})
}

// The values of headers are decoded once, and the answer's are encoded.
func TestHeaderValues(t *testing.T) {
	headers := strings.Replace(binary, "ce-id: 1", `ce-id: "a \"b\"" %2525 %e2%82%ac €`, 1) + "ce-mine: %41"
	posted(t, headers, document, func(c *fiber.Ctx) {
		e, problem := readEvent(c, []byte(document), false)
		if problem != nil {
			t.Fatalf("%s: %s", problem.Field, problem.Detail)
		}
		if want := `a "b" %25 € €`; e.ID() != want || e.Extensions()["mine"] != "A" {
			t.Errorf("id %q, extensions %v", e.ID(), e.Extensions())
		}
		e.SetExtension("causationid", e.ID())
		if err := setAttributes(c, e); err != nil {
			t.Fatal(err)
		}
		const encoded = "a%20%22b%22%20%2525%20%E2%82%AC%20%E2%82%AC"
		if got := string(c.Response().Header.Peek("Ce-Causationid")); got != encoded {
			t.Errorf("causationid %s", got)
		}
	})
}

func TestRepeatedHeader(t *testing.T) {
	posted(t, binary, document, func(c *fiber.Ctx) {
		c.Request().Header.Add("ce-id", "2")
		if _, problem := readEvent(c, []byte(document), false); problem == nil || problem.Field != "id" || problem.Status != 400 {
			t.Errorf("%v", problem)
		}
	})
}

// Attributes come back in the answer, and are kept: they are bounded one by one
// and all together.
func TestAttributesAreBounded(t *testing.T) {
	long := strings.Repeat("x", maxAttribute)
	var many strings.Builder
	for i := range maxAttributes/maxAttribute - 1 {
		fmt.Fprintf(&many, `"e%d":"%s",`, i, long)
	}
	event := structured(many.String() + `"data":` + document)
	posted(t, structuredType, event, func(c *fiber.Ctx) {
		if _, problem := readEvent(c, []byte(event), true); problem != nil {
			t.Errorf("%s: %s", problem.Field, problem.Detail)
		}
	})
	refuses(t, structuredType, structured(many.String()+`"z":"`+long+`","data":`+document), "z")
	refuses(t, structuredType, structured(`"a":"`+long+`x","data":`+document), "a")
	refuses(t, binary+"ce-a: "+long+"x", document, "a")
	refuses(t, strings.Replace(binary, "ce-id: 1", "ce-id: "+long+"x", 1), document, "id")
	refuses(t, structuredType, structured(`"`+strings.Repeat("n", maxAttributes)+`":"x","data":`+document), strings.Repeat("n", 64))
}
