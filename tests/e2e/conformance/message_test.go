package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

// program is the request that events carry.
const program = `{"language": "bash", "code": "echo hello"}`

// field is a header, or a member of a JSON object in JSON.
type field struct{ name, value string }

// message is a request, written byte by byte: clients would correct what is
// wrong with it.
type message struct {
	method string
	header []field
	// members are those of an event in structured mode, unless there is a body.
	members []field
	body    string
	// id of the event, as its reply has to name it.
	id string
	// again sends the message twice.
	again bool
	// shown is what is special about it.
	shown []string
}

// change makes a message a special one.
type change func(*message)

// id stands for an id that no other message has.
const id = "ID"

func binary(changes ...change) *message {
	m := &message{
		method: http.MethodPost, id: id, body: program,
		header: []field{
			{"ce-specversion", "1.0"}, {"ce-id", id}, {"ce-source", "/test"}, {"ce-type", execution.TypeRequested}, {"Content-Type", execution.MediaJSON},
		},
	}
	return m.changed("binary", changes)
}

func structured(changes ...change) *message {
	m := &message{
		method: http.MethodPost, id: id,
		header: []field{{"Content-Type", execution.MediaCloudEvent}},
		members: []field{
			{"specversion", `"1.0"`}, {"id", `"` + id + `"`}, {"source", `"/test"`}, {"type", `"` + execution.TypeRequested + `"`}, {"data", program},
		},
	}
	return m.changed("structured", changes)
}

// plain is a request without an event.
func plain(changes ...change) *message {
	m := &message{method: http.MethodPost, body: program, header: []field{{"Content-Type", execution.MediaJSON}}}
	return m.changed("no event", changes)
}

func (m *message) changed(mode string, changes []change) *message {
	m.shown = append(m.shown, mode)
	for _, c := range changes {
		c(m)
	}
	return m
}

func (m *message) show(format string, args ...any) {
	m.shown = append(m.shown, fmt.Sprintf(format, args...))
}

// with sets a header.
func with(name, value string) change {
	return func(m *message) {
		m.header = append(remove(m.header, name), field{name, value})
		m.show("`%s: %s`", name, value)
	}
}

// also adds a header beside those of its name.
func also(name, value string) change {
	return func(m *message) {
		m.header = append(m.header, field{name, value})
		m.show("`%s: %s` as well", name, value)
	}
}

// without leaves headers, or members, out.
func without(names ...string) change {
	return func(m *message) {
		for _, name := range names {
			m.header, m.members = remove(m.header, name), remove(m.members, name)
			m.show("no `%s`", name)
		}
	}
}

// member sets a member of an event in structured mode.
func member(name, value string) change {
	return func(m *message) {
		m.members = append(remove(m.members, name), field{name, value})
		m.show("`\"%s\": %s`", name, value)
	}
}

// alsoMember adds a member beside one of its name.
func alsoMember(name, value string) change {
	return func(m *message) {
		m.members = append(m.members, field{name, value})
		m.show("`\"%s\": %s` as well", name, value)
	}
}

// body sets the body, and says what it is.
func body(text, what string) change {
	return func(m *message) {
		m.body = text
		m.show("%s", what)
	}
}

func method(name string) change {
	return func(m *message) {
		m.method = name
		m.show("`%s`", name)
	}
}

// named says what the id of the event is once it is decoded.
func named(id string) change { return func(m *message) { m.id = id } }

func again(m *message) {
	m.again = true
	m.show("again")
}

func remove(fields []field, name string) []field {
	return slices.DeleteFunc(fields, func(f field) bool { return strings.EqualFold(f.name, name) })
}

// text is the message as it is sent, with an id in the place of the stand-in.
func (m *message) text(host, unique string) string {
	body := m.body
	if m.members != nil && body == "" {
		var parts []string
		for _, f := range m.members {
			parts = append(parts, fmt.Sprintf("%q: %s", f.name, f.value))
		}
		body = "{" + strings.Join(parts, ", ") + "}"
	}
	if m.members != nil {
		body = strings.Replace(body, `"`+id+`"`, `"`+unique+`"`, 1)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: %d\r\n", m.method, host, len(body))
	for _, f := range m.header {
		value := f.value
		if value == id {
			value = unique
		}
		fmt.Fprintf(&b, "%s: %s\r\n", f.name, value)
	}
	return b.String() + "\r\n" + body
}

// send sends a text to the server and returns what it answers.
func send(t *testing.T, text string) (*http.Response, []byte) {
	t.Helper()
	res, got := shared.Raw(t, false, text)
	if res == nil {
		t.Fatal("the server has not answered")
	}
	return res, got
}
