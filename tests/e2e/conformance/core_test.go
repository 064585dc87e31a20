package conformance

import "strings"

func requiredRows() []row {
	var rows []row
	const says = "the REQUIRED attributes are there, and not empty"
	for _, name := range []string{"specversion", "id", "source", "type"} {
		names := "400, names `" + name + "`"
		rows = append(rows,
			row{"REQUIRED attributes", must, says, binary(without("ce-" + name)), names, nil, ""},
			row{"REQUIRED attributes", must, says, binary(with("ce-"+name, "")), names, nil, ""},
			row{"REQUIRED attributes", must, says, structured(without(name)), names, nil, ""},
			row{"REQUIRED attributes", must, says, structured(member(name, `""`)), names, nil, ""},
		)
	}
	for _, version := range []string{"0.3", "1.0.2", "2.0"} {
		rows = append(rows,
			row{"specversion", must, "the version is 1.0", binary(with("ce-specversion", version)), "400, names `specversion`", nil, ""},
			row{"specversion", must, "the version is 1.0", structured(member("specversion", `"`+version+`"`)), "400, names `specversion`", nil, ""},
		)
	}
	return append(rows,
		row{"source", must, "the source is a URI-reference", binary(with("ce-source", "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66")), inBinary, nil, ""},
		row{"source", must, "the source is a URI-reference", binary(with("ce-source", "1-555-123-4567")), inBinary, nil, ""},
		row{"source", must, "the source is a URI-reference", binary(with("ce-source", "http://[")), "400, names `source`", nil, ""},
		row{"type", may, "the type is any string", binary(with("ce-type", "/any%20thing")), inBinary, nil, ""},
		row{"id", may, "events of the same source and id are duplicates", binary(again), inBinary + ", twice the same", nil, ""},
		row{"id", may, "events of the same source and id are duplicates", structured(again), inStructured + ", twice the same", nil, ""},
	)
}

func nameRows() []row {
	const says = "names have lower-case letters and digits only"
	return []row{
		{"Naming conventions", must, says, structured(member("Mine", `"x"`)), "400, names `Mine`", nil, ""},
		{"Naming conventions", must, says, structured(alsoMember("ID", `"x"`)), "400, names `ID`", nil, ""},
		{"Naming conventions", must, says, structured(member("my_thing", `"x"`)), "400, names `my_thing`", nil, ""},
		{"Naming conventions", must, says, structured(member("my-thing", `"x"`)), "400, names `my-thing`", nil, ""},
		{"Naming conventions", must, says, structured(member("día", `"x"`)), "400, names `día`", nil, ""},
		{"Naming conventions", must, says, binary(with("ce-my-thing", "x")), "400, names `my-thing`", nil, ""},
		{"Naming conventions", must, says, binary(with("ce-my_thing", "x")), "400, names `my_thing`", nil, ""},
		{"Naming conventions", must, says, structured(member("a1", `"x"`)), inStructured + ", `\"a1\": \"x\"`", []string{"a1"}, ""},
		{"Naming conventions", mustNot, "an attribute is named `data`", binary(with("ce-data", "x")), "400, names `data`", nil, ""},
		{"Naming conventions", should, "names have 20 characters at most", binary(with("ce-averyveryverylongname", "x")), inBinary + ", `ce-averyveryverylongname: x`", []string{"ce-averyveryverylongname"}, ""},
		{"Context attributes", must, "an attribute is there once", binary(also("ce-id", "other")), "400, names `id`", nil, ""},
		{"Context attributes", must, "an attribute is there once", binary(with("ce-mine", "x"), also("Ce-Mine", "x")), "400, names `mine`", nil, ""},
		{"Context attributes", must, "an attribute is there once", structured(alsoMember("id", `"other"`)), "400, names `id`", nil, ""},
		{"Type system", must, "a String has no control characters", binary(with("ce-mine", "a%0Ab")), "400, names `mine`", nil, ""},
		{"Type system", must, "a String has no control characters", structured(member("id", `"a\u0000"`)), "400, names `id`", nil, ""},
		{"Type system", must, "a String has no control characters", structured(member("subject", `"\u0085"`)), "400, names `subject`", nil, ""},
		{"Type system", must, "a String has no noncharacters", structured(member("mine", `"\ufdd0"`)), "400, names `mine`", nil, ""},
		{"Type system", must, "a String has surrogates in pairs only", structured(member("mine", `"\udead"`)), "400", nil, ""},
	}
}

func optionalRows() []row {
	return []row{
		{"datacontenttype", must, "the type is a media type by RFC 2046", structured(member("datacontenttype", `"json"`)), "400, names `datacontenttype`", nil, ""},
		{"datacontenttype", must, "the type is a media type by RFC 2046", structured(member("datacontenttype", `""`)), "400, names `datacontenttype`", nil, ""},
		{"subject", must, "the subject is not empty", structured(member("subject", `""`)), inStructured, nil, "lenient: it counts as left out, since it means nothing here"},
		{"subject", must, "the subject is not empty", binary(with("ce-subject", "")), inBinary, nil, "lenient: it counts as left out, since it means nothing here"},
		{"subject", rule, "the subject is a string", binary(with("ce-subject", "my%20thing")), inBinary, nil, ""},
	}
}

func coreRows() []row {
	large := `{"language": "bash", "code": "echo hello #` + strings.Repeat("x", 64<<10) + `"}`
	return []row{
		{"Extension context attributes", may, "there are extensions, which come back on the reply with their types", structured(member("mine", `"x"`), member("n", "7"), member("b", "false")), inStructured + ", `\"mine\": \"x\"`, `\"n\": 7`, `\"b\": false`", []string{"mine", "n", "b"}, ""},
		{"Size limits", should, "events of 64 KB are accepted", binary(body(large, "more than 64 KiB of data")), inBinary, nil, ""},
		{"Size limits", should, "events of 64 KB are accepted", structured(member("data", large), shortened), inStructured, nil, ""},
	}
}

// shortened says what is special about a message in fewer words.
func shortened(m *message) { m.shown = []string{m.shown[0], "more than 64 KiB of data"} }

func besideRows() []row {
	const validation = "a sender asks for permission before it sends (abuse protection)"
	return []row{
		{"Webhook 4.1", rule, validation, plain(method("OPTIONS"), with("WebHook-Request-Origin", "events.example.com"), body("", "no body")), "405, `Allow: GET, HEAD, POST`, no `WebHook-Allowed-Origin`", []string{"WebHook-Allowed-Origin"}, "not offered: senders on a cluster, such as Knative, do not ask"},
		{"Webhook 2.1", rule, "deliveries are POST", binary(), inBinary, nil, ""},
		{"Knative", rule, "a reply that comes back makes no loop", binary(with("ce-type", "dev.preheat.execution.completed")), "202, no body", nil, ""},
	}
}
