package conformance

import "github.com/preheat-dev/preheat/api/execution"

// Answers that many messages get.
const (
	inBinary     = "200, completed, binary"
	inStructured = "200, completed, structured"
	noEvent      = "200, a result, no event"
)

const (
	must    = "MUST"
	mustNot = "MUST NOT"
	should  = "SHOULD"
	may     = "MAY"
	rule    = "definition"
)

func tables() []table {
	return []table{
		{
			"The HTTP protocol binding 1.0.2", "Section numbers are those of the [HTTP protocol binding](https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md).",
			slicesOf(modeRows(), contentTypeRows(), headerNameRows(), headerValueRows(), structuredRows()),
		},
		{
			"The JSON event format 1.0.2", "Section numbers are those of the [JSON event format](https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md).",
			slicesOf(memberRows(), timeRows(), envelopeRows(), dataRows()),
		},
		{
			"The core specification 1.0.2", "What both rest on: the [core specification](https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md).",
			slicesOf(requiredRows(), nameRows(), optionalRows(), coreRows()),
		},
		{
			"Beside the specifications", "The [webhook specification](https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md) is not a part of the binding.",
			besideRows(),
		},
	}
}

func slicesOf(parts ...[]row) []row {
	var all []row
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

func modeRows() []row {
	return []row{
		{"1.3", should, "binary mode is supported, and the reply is in it", binary(), inBinary, nil, ""},
		{"1.3", should, "structured mode is supported, and the reply is in it", structured(), inStructured, nil, ""},
		{"1.4", may, "other event formats than JSON are supported", structured(with("Content-Type", "application/cloudevents+avro")), "415", nil, "not offered"},
		{"1.4", may, "other event formats than JSON are supported", structured(with("Content-Type", "application/cloudevents")), "415", nil, "not offered"},
		{"1.2", may, "events come with any method that has a body", binary(method("PUT")), "405, `Allow: GET, HEAD, POST`", nil, "not offered"},
		{"3", rule, "the content type tells the mode, not the headers", structured(with("ce-id", "other"), with("ce-time", "never")), inStructured, nil, ""},
		{"3", rule, "the content type tells the mode, in any case and with parameters", structured(with("Content-Type", "Application/CloudEvents+JSON; charset=UTF-8")), inStructured, nil, ""},
		{"3", rule, "a content type of batches is batched mode", structured(with("Content-Type", "application/cloudevents-batch+json"), body("["+program+"]", "a batch")), "415", nil, "not offered"},
		{"3.3.2", may, "a batch is empty", structured(with("Content-Type", "application/cloudevents-batch+json"), body("[]", "an empty batch")), "415", nil, "not offered"},
		{"3", mustNot, "the reply is batched unless that was solicited", binary(with("Accept", "application/cloudevents-batch+json")), inBinary, nil, ""},
		{"3", rule, "what has none of the attributes is no event", plain(), noEvent, nil, ""},
		{"3", rule, "what has none of the attributes is no event", plain(with("Content-Type", "text/plain")), "415", nil, ""},
		{"3", rule, "what has some of the mandatory attributes is no valid event", binary(without("ce-specversion")), "400, names `specversion`", nil, ""},
		{"3", rule, "what has some of the mandatory attributes is no valid event", plain(with("ce-mine", "x")), "400, names `specversion`", nil, ""},
	}
}

func contentTypeRows() []row {
	return []row{
		{"3.1.1", must, "`Content-Type` is `datacontenttype`, here JSON", binary(with("Content-Type", "application/vnd.mine+json; charset=utf-8")), inBinary, nil, ""},
		{"3.1.1", must, "`Content-Type` is `datacontenttype`, here text that is JSON", binary(with("Content-Type", "text/plain")), inBinary, nil, ""},
		{"3.1.1", must, "`Content-Type` is `datacontenttype`, here what cannot be a request", binary(with("Content-Type", "image/png")), "400, names `datacontenttype`", nil, ""},
		{"3.1.1", must, "`Content-Type` is `datacontenttype`, on the reply as well", binary(), inBinary + ", `Content-Type: application/json`", []string{"Content-Type"}, ""},
		{"3.1.1", mustNot, "`ce-datacontenttype` is there as well", binary(with("ce-datacontenttype", "application/json")), "400, names `datacontenttype`", nil, ""},
		{"2.1", rule, "`datacontenttype` is a media type by RFC 2046", binary(with("Content-Type", "json")), "400, names `datacontenttype`", nil, ""},
		{"2.2", rule, "data is encoded as `datacontenttype` says", binary(with("Content-Type", "application/json; charset=utf-8"), body(`{"language": "bash", "code": "echo hello # €"}`, "UTF-8 in the data")), inBinary, nil, ""},
		{"2.2", rule, "data is encoded as `datacontenttype` says", binary(with("Content-Type", "application/json; charset=utf-16")), "400, names `datacontenttype`", nil, ""},
		{"3.1.2", rule, "the body is the data", binary(body(" \n"+program+"\n", "white space around the data")), inBinary, nil, ""},
		{"3.1.2", rule, "the body is the data", binary(body("", "no body")), "400, names `data`", nil, ""},
		{"3.1.2", rule, "the body is the data", binary(body("{", "broken JSON")), "400", nil, ""},
		{"3.1.2", rule, "the body is the data, without a `Content-Type`", binary(without("Content-Type")), inBinary, nil, "lenient: JSON is assumed, as in the JSON format"},
	}
}

func headerNameRows() []row {
	return []row{
		{"3.1.3", must, "each extension is mapped from and to a header", binary(with("ce-mine", "x"), with("ce-n", "7")), inBinary + ", `ce-mine: x`, `ce-n: 7`", []string{"ce-mine", "ce-n"}, ""},
		{"3.1.3", must, "an extension with a header of its own is a `ce-` header, too", binary(with("ce-traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")), inBinary + ", `ce-traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`", []string{"ce-traceparent"}, ""},
		{"3.1.3.1", must, "names of headers are those of the attributes, with `ce-`", binary(without("ce-id"), with("id", "1")), "400, names `id`", nil, ""},
		{"3.1.3.1", rule, "names of headers have no case", binary(without("ce-id"), with("CE-ID", id), with("cE-mInE", "x")), inBinary + ", `ce-mine: x`", []string{"ce-mine"}, ""},
	}
}

func headerValueRows() []row {
	mine := func(value, reply, says, level, but string) row {
		return row{"3.1.3.2", level, says, binary(with("ce-mine", value)), inBinary + ", `ce-mine: " + reply + "`", []string{"ce-mine"}, but}
	}
	refused := func(value, says string) row {
		return row{"3.1.3.2", must, says, binary(with("ce-mine", value)), "400, names `mine`", nil, ""}
	}
	const asIs = "lenient: the SDK for Go, and so Knative, sends values as they are"
	return []row{
		mine("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro%20%E2%82%AC%20%F0%9F%98%80", "space, percent and what is not visible ASCII is percent-encoded, characters beyond the BMP as one", must, ""),
		{"3.1.3.2", must, "percent encoding is decoded, as the reply's `causationid` shows", binary(with("ce-id", "caf%C3%A9%20no.%201"), named("café no. 1")), inBinary + ", `ce-causationid: caf%C3%A9%20no.%201`", []string{"ce-causationid"}, ""},
		mine("%e2%82%ac", "%E2%82%AC", "lower-case hexadecimal digits are accepted, upper-case ones written", must, ""),
		mine("%41%2d%5A", "A-Z", "what was encoded without need is accepted", must, ""),
		mine("%2541", "%2541", "percent encoding is decoded once", must, ""),
		mine(`"a \"b\" \\"`, `a%20%22b%22%20\`, "quoted strings are resolved, with their backslashes", must, ""),
		mine(`"%20"`, "%20", "quoted strings are resolved before percent encoding", must, ""),
		refused("%C0%A0", "encoded bytes that are not UTF-8 are rejected: an overlong form"),
		refused("%ED%A0%80", "encoded bytes that are not UTF-8 are rejected: half a surrogate pair"),
		refused("a%FF", "encoded bytes that are not UTF-8 are rejected: no character"),
		mine("€", "%E2%82%AC", "headers have printable ASCII only", must, asIs),
		mine("a b", "a%20b", "space is encoded", must, asIs),
		mine("50%", "50%25", "percent is encoded", must, asIs),
		refused(`"a`, "quoted strings have an end"),
	}
}

func structuredRows() []row {
	return []row{
		{"3.2.1", must, "the content type of the reply is that of the format", structured(), inStructured, nil, ""},
		{"3.2.1", rule, "JSON is in UTF-8", structured(with("Content-Type", execution.MediaCloudEvent+"; charset=utf-8")), inStructured, nil, ""},
		{"3.2.1", rule, "JSON is in UTF-8", structured(with("Content-Type", execution.MediaCloudEvent+"; charset=iso-8859-1")), "415", nil, ""},
		{"3.2.3", may, "headers of binary mode are there as well", structured(with("ce-specversion", "1.0"), with("ce-id", "other"), with("ce-mine", "x")), inStructured + ", no `mine`", []string{"mine"}, ""},
		{"3.2.3", must, "all attributes are in the payload, even if they are headers, too", structured(without("id"), with("ce-id", "1")), "400, names `id`", nil, ""},
	}
}
