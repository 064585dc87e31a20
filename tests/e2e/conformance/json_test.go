package conformance

import (
	"encoding/base64"
	"strconv"
)

func memberRows() []row {
	mine := func(value, says, reply string) row {
		return row{"2.2", must, says, structured(member("mine", value)), inStructured + ", " + reply, []string{"mine"}, ""}
	}
	refused := func(name, value, says string) row {
		return row{"2.2", must, says, structured(member(name, value)), "400, names `" + name + "`", nil, ""}
	}
	return []row{
		mine("true", "a Boolean is a JSON boolean", "`\"mine\": true`"),
		mine("-2147483648", "an Integer is a JSON number", "`\"mine\": -2147483648`"),
		mine(`"Euro € \ud83d\ude00"`, "a String is a JSON string", "`\"mine\": \"Euro € 😀\"`"),
		mine(`"3q2+7w=="`, "a Binary is base64 in a JSON string", "`\"mine\": \"3q2+7w==\"`"),
		mine("null", "null is the same as left out", "no `mine`"),
		refused("mine", "1.5", "a number has an integer component only"),
		refused("mine", "1e2", "a number has an integer component only"),
		refused("mine", "2147483648", "an Integer has 32 bits"),
		refused("mine", "{}", "there are no other types: an object"),
		refused("mine", "[]", "there are no other types: an array"),
		refused("id", "1", "a String is a JSON string"),
		refused("specversion", "1.0", "a String is a JSON string"),
		refused("subject", "true", "a String is a JSON string"),
		refused("id", "null", "null is the same as left out, here of a REQUIRED attribute"),
		{"2.2", must, "null is the same as left out", structured(member("subject", "null"), member("time", "null"), member("dataschema", "null"), member("datacontenttype", "null")), inStructured, nil, ""},
		refused("source", `"http://["`, "a URI-reference follows RFC 3986"),
		refused("dataschema", `"schema.json"`, "a URI follows RFC 3986 and is absolute"),
		{"2.2", must, "a URI follows RFC 3986", structured(member("dataschema", `"https://example.com/schema.json"`)), inStructured, nil, ""},
		{"2", must, "extensions are top-level members", structured(member("extensions", `{"mine": "x"}`)), "400, names `extensions`", nil, ""},
	}
}

func timeRows() []row {
	taken := func(value string) row {
		return row{"2.2", must, "a Timestamp follows RFC 3339", structured(member("time", strconv.Quote(value))), inStructured, nil, ""}
	}
	refused := func(value string) row {
		return row{"2.2", must, "a Timestamp follows RFC 3339", structured(member("time", strconv.Quote(value))), "400, names `time`", nil, ""}
	}
	return []row{
		taken("2018-04-05T17:31:00Z"), taken("2018-04-05T17:31:00.123456789+02:00"), taken("2018-04-05T17:31:00.1-00:00"), taken("2018-04-05t17:31:00z"),
		{"2.2", must, "a Timestamp follows RFC 3339", structured(member("time", `"2016-12-31T23:59:60Z"`)), "400, names `time`", nil, "not kept: leap seconds are not known"},
		refused("2018-04-05 17:31:00Z"), refused("2018-04-05T17:31:00"), refused("2018-04-05"), refused("2018-02-30T00:00:00Z"), refused("1522949460"), refused(""),
		{"2.2", must, "a Timestamp follows RFC 3339", binary(with("ce-time", "2018-04-05T17:31:00.5Z")), inBinary, nil, ""},
		{"2.2", must, "a Timestamp follows RFC 3339", binary(with("ce-time", "2018-04-05t17:31:00z")), inBinary, nil, ""},
		{"2.2", must, "a Timestamp follows RFC 3339", binary(with("ce-time", "yesterday")), "400, names `time`", nil, ""},
	}
}

func envelopeRows() []row {
	return []row{
		{"3", must, "the media type is `application/cloudevents+json`", structured(with("Content-Type", "application/json")), "422, names `specversion`", nil, ""},
		{"3", must, "an event is a JSON object", structured(body("[]", "an array")), "400", nil, ""},
		{"3", must, "an event is a JSON object", structured(body(`{"specversion": "1.0"`, "broken JSON")), "400", nil, ""},
		{"3", must, "an event is a JSON object", structured(body("{\"specversion\": \"1.0\", \"id\": \"\xff\"}", "no UTF-8")), "400", nil, ""},
		{"3", rule, "members come in any order", structured(without("specversion"), member("specversion", `"1.0"`)), inStructured, nil, ""},
	}
}

func dataRows() []row {
	encoded := strconv.Quote(base64.StdEncoding.EncodeToString([]byte(program)))
	return []row{
		{"3.1.1", must, "data of a JSON type is stored as a JSON value, not as a string: see the reply", structured(), inStructured + ", `\"datacontenttype\": \"application/json\"`", []string{"datacontenttype"}, ""},
		{"3.1.2", must, "`data_base64` is decoded", structured(without("data"), member("data_base64", encoded)), inStructured, nil, ""},
		{"3.1.2", must, "`data_base64` is decoded, whatever the type", structured(without("data"), member("datacontenttype", `"text/plain"`), member("data_base64", encoded)), inStructured, nil, ""},
		{"3.1.2", must, "`data_base64` is base64", structured(without("data"), member("data_base64", `"%"`)), "400, names `data_base64`", nil, ""},
		{"3.1.2", must, "`data_base64` is a string", structured(without("data"), member("data_base64", "1")), "400, names `data_base64`", nil, ""},
		{"3.1.1", rule, "`data` and `data_base64` exclude each other", structured(member("data_base64", encoded)), "400, names `data_base64`", nil, ""},
		{"3.1.2", must, "`data` of a JSON type is a JSON value", structured(member("datacontenttype", `"application/json"`)), inStructured, nil, ""},
		{"3.1.2", must, "`data` of a JSON type is a JSON value", structured(member("datacontenttype", `"application/vnd.mine+json"`)), inStructured, nil, ""},
		{"3.1.2", must, "`data` of a JSON type is a JSON value", structured(member("datacontenttype", `"text/json"`)), inStructured, nil, ""},
		{"3.1.2", should, "without `datacontenttype`, `data` is a JSON value", structured(), inStructured, nil, ""},
		{"3.1.2", mustNot, "a string of a JSON type is deserialized once more", structured(member("data", strconv.Quote(program))), inStructured, nil, "lenient: the OpenShift console encodes data twice, and no string is a request"},
		{"3.1.2", rule, "`data` is any JSON value, here no request", structured(member("data", "7")), "400", nil, ""},
		{"3.1.1", may, "`data` is null, which is not the same as absent", structured(member("data", "null")), "400", nil, ""},
		{"3.1.1", may, "`data` is absent", structured(without("data")), "400, names `data`", nil, ""},
		{"3.1.2", should, "`data` of another type is a string", structured(member("datacontenttype", `"text/plain"`), member("data", strconv.Quote(program))), inStructured, nil, ""},
		{"3.1.2", may, "`data` of another type fails unless it is a string", structured(member("datacontenttype", `"text/plain"`)), "400, names `data`", nil, ""},
		{"3.1.2", may, "`data` of a type that cannot be interpreted fails", structured(member("datacontenttype", `"application/xml"`), member("data", `"<a/>"`)), "400, names `datacontenttype`", nil, ""},
		{"4", mustNot, "the batch format is used where only the JSON format is indicated", structured(body("["+program+"]", "a batch")), "400", nil, ""},
	}
}
