package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

const argumentSchema = `{"type":"object","$defs":{"N":{"type":"integer"}},"properties":{
	"s":{"type":"string"},"i":{"$ref":"#/$defs/N"},"n":{"type":"number"},"b":{"type":"boolean"},"o":{"type":"object"},
	"l":{"type":"array","items":{"type":"string"}},"li":{"type":"array","items":{"type":"integer"}},
	"maybe":{"anyOf":[{"type":"null"},{"type":"integer"}]},"mixed":{"type":["string","null","integer"]},"any":{},"e":{"enum":["a",1]}}}`

func TestArguments(t *testing.T) {
	for _, test := range []struct {
		name, given string
		pairs       []string
		want        string // or what the error holds
	}{
		{"nothing", `{}`, nil, `{}`},
		{"given alone keeps its bytes", `{ "a" : 1.0 }`, nil, `{ "a" : 1.0 }`},
		{"text stays text", `{}`, []string{"s=1", "s2=x"}, `{"s":"1","s2":"x"}`},
		{"text with everything in it", `{}`, []string{`s=a=b "c"`}, `{"s":"a=b \"c\""}`},
		{"empty text", `{}`, []string{"s="}, `{"s":""}`},
		{"a number keeps its digits", `{}`, []string{"n=1.50", "i=9007199254740993"}, `{"n":1.50,"i":9007199254740993}`},
		{"whole in another way", `{}`, []string{"i=1e3"}, `{"i":1e3}`},
		{"boolean", `{}`, []string{"b=true"}, `{"b":true}`},
		{"object", `{}`, []string{`o={"k":[1]}`}, `{"o":{"k":[1]}}`},
		{"list as JSON", `{}`, []string{`li=[1,2]`}, `{"li":[1,2]}`},
		{"list of one", `{}`, []string{"l=1"}, `{"l":["1"]}`},
		{"list by repetition", `{}`, []string{"li=1", "s=x", "li=2"}, `{"li":[1,2],"s":"x"}`},
		{"alternative", `{}`, []string{"maybe=3"}, `{"maybe":3}`},
		{"several types", `{}`, []string{"mixed=null"}, `{"mixed":null}`},
		{"several types, number", `{}`, []string{"mixed=7"}, `{"mixed":7}`},
		{"several types, text", `{}`, []string{"mixed=seven"}, `{"mixed":"seven"}`},
		{"no type: what is JSON is taken for it", `{}`, []string{"any=[1]", "e=1", "new=true"}, `{"any":[1],"e":1,"new":true}`},
		{"no type: else text", `{}`, []string{"any=[1", "e=a"}, `{"any":"[1","e":"a"}`},
		{"quotes are text", `{}`, []string{`any="x"`}, `{"any":"\"x\""}`},
		{"unknown key several times", `{}`, []string{"new=1", "new=b"}, `{"new":[1,"b"]}`},
		{"pairs win", `{"s":"old","z":1}`, []string{"s=new"}, `{"z":1,"s":"new"}`},
		{"no number", `{}`, []string{"n=one"}, `call: n: want number, not "one"`},
		{"no boolean", `{}`, []string{"b=yes"}, `call: b: want boolean, not "yes"`},
		{"no object", `{}`, []string{"o=[]"}, `call: o: want object`},
		{"no integers", `{}`, []string{"li=1", "li=b"}, `call: li: want a list of integer, not "b"`},
		{"one only", `{}`, []string{"s=1", "s=2"}, `call: s: given 2 times`},
	} {
		got, err := arguments(json.RawMessage(test.given), test.pairs, json.RawMessage(argumentSchema))
		if err != nil {
			got = json.RawMessage(err.Error())
		}
		if err == nil && string(got) != test.want || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v:\n got %s\nwant %s", test.name, test.pairs, got, test.want)
		}
	}
	if got, err := arguments(json.RawMessage(`{}`), []string{"a=1"}, nil); err != nil || string(got) != `{"a":1}` {
		t.Errorf("without a schema: %s %v", got, err)
	}
}

func FuzzArguments(f *testing.F) {
	f.Add("s=1", "i=2", argumentSchema)
	f.Add("li=[", "li=1e9", `{"properties":{"li":{"type":["array",5],"items":true}}}`)
	f.Fuzz(func(t *testing.T, one, two, schema string) {
		if jsonrpc.Check([]byte(schema)) != nil {
			return
		}
		got, err := arguments(json.RawMessage(`{}`), []string{one, two}, json.RawMessage(schema))
		if err == nil && (jsonrpc.Check(got) != nil || !jsonrpc.IsObject(got)) {
			t.Errorf("%q %q: %s", one, two, got)
		}
	})
}

func TestTimeoutFlag(t *testing.T) {
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "6m": 6 * time.Minute, "360000": 6 * time.Minute, "24h": 24 * time.Hour, "1": time.Millisecond} {
		var got timeout
		if err := got.Set(text); err != nil || time.Duration(got) != want {
			t.Errorf("%s: %v %v", text, time.Duration(got), err)
		}
	}
	for _, text := range []string{"", "0", "-1s", "-5", "25h", "86400001", "9223372036854775807", "99999999999999999999", "soon", "1.5"} {
		var got timeout
		if err := got.Set(text); err == nil {
			t.Errorf("%q: accepted as %v", text, time.Duration(got))
		}
	}
}

func TestWantsJSON(t *testing.T) {
	for line, want := range map[string]bool{
		"list --json": true, "list": false, "check a --json=true": true, "list --json=false": false, "list -- --json": false,
		"list --json=1": true, "check --json=T": true, "list --json --json=0": false, "list --json=no": false,
		"call a.b --output json": true, "call a.b --output=raw": true, "call a.b --output text": false, "call --json {} a.b": false,
		"call a.b --output json --output text": false, "catalog --format json": true, "catalog --format xml": false,
		"--json": false, "": false, "version --json": false, "call --output": false,
	} {
		if got := wantsJSON(strings.Fields(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestResultForms(t *testing.T) {
	for _, test := range []struct{ name, result, text, value string }{
		{"text", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "a\nb", ""},
		{"text that is JSON", `{"content":[{"type":"text","text":"{\"n\":1.50}"}]}`, `{"n":1.50}`, `{"n":1.50}`},
		{"structured", `{"content":[{"type":"text","text":"t"}],"structuredContent":{"k":1}}`, "t", `{"k":1}`},
		{"structured null", `{"content":[{"type":"text","text":"7"}],"structuredContent":null}`, "7", `7`},
		{"image", `{"content":[{"type":"text","text":"t"},{"type":"image","data":"AAAAAA==","mimeType":"image/png"}]}`, "t\n[image image/png 4 bytes]", ""},
		{"link", `{"content":[{"type":"resource_link","uri":"file:///a","name":"n"}]}`, "[resource_link n file:///a 53 bytes]", ""},
		{"resource", `{"content":[{"type":"resource","resource":{"uri":"x:y","text":"four"}}]}`, "[resource x:y 4 bytes]", ""},
		{"strange", `{"content":[{"type":"\u001b[2J"}]}`, "[\ufffd[2J 20 bytes]", ""},
		{"empty", `{"content":[]}`, "", ""},
	} {
		if got := plainText(json.RawMessage(test.result)); got != test.text {
			t.Errorf("%s: text %q, want %q", test.name, got, test.text)
		}
		want := test.value
		if want == "" {
			want = test.result
		}
		if got := string(value(json.RawMessage(test.result))); got != want {
			t.Errorf("%s: value %s, want %s", test.name, got, want)
		}
	}
}

func TestTerminalText(t *testing.T) {
	if got := cleanLines("a\tb\r\nc\x1b[31m\u202e"); got != "a\tb\nc\ufffd[31m\ufffd" {
		t.Errorf("%q", got)
	}
	if got := summary("  first\nsecond"); got != "first…" {
		t.Errorf("%q", got)
	}
	if got := summary(strings.Repeat("é", 200)); len([]rune(got)) != maxSummary || !strings.HasSuffix(got, "…") {
		t.Errorf("%q", got)
	}
}
