#!/usr/bin/env node
console.log("bom and crlf");
