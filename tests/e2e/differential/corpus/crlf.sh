echo crlf
