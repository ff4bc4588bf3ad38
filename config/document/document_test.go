package document_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/config/document"
)

// decode reads every type there is out of text and returns the report.
func decode(text string) (*document.Report, bool) {
	report := document.NewReport()
	root, ok := document.Read(report, "a.yaml", []byte(text))
	if !ok {
		return report, false
	}
	o, ok := root.Object()
	if !ok {
		return report, false
	}
	var s, choice string
	var yes bool
	var n int
	var d time.Duration
	o.SetText("text", &s)
	o.SetOneOf("choice", &choice, "red", "green", "blue")
	o.SetBool("bool", &yes)
	o.SetInt("int", &n, 1, 10)
	o.SetDuration("duration", &d, time.Second, time.Minute)
	if v, there := o.Get("max_size"); there {
		v.Texts()
	}
	o.Foreign("foreign")
	o.Close(map[string]string{"colour": "write choice"})
	return report, true
}

func TestReport(t *testing.T) {
	rows := []struct{ name, text, want string }{
		{"all right", "text: a\nchoice: red\nbool: true\nint: 0x5\nduration: 1m\nmax_size: [a, b]\nforeign: {}", ""},
		{"nothing", "# empty", ""},
		{"no mapping", "[a]", "a.yaml:1: is a list (want a mapping)"},
		{"types", "text: 1\nbool: yes\nint: x\nduration: []\nmax_size: a",
			"a.yaml:1: text: is a number (want a text: put it in quotes)\na.yaml:2: bool: is a text (want true or false)\n" +
				"a.yaml:3: int: is a text (want a whole number)\na.yaml:4: duration: is a list (want a duration such as 30s, or a number of seconds)\n" +
				"a.yaml:5: max_size: is a text (want a list)"},
		{"ranges", "int: 11\nduration: 5000\nchoice: pink\nmax_size: [' ', null]",
			"a.yaml:1: int: 11 is out of range (want 1 to 10)\n" +
				"a.yaml:2: duration: 5000 is out of range (1s to 1m) and looks like milliseconds: a bare number is seconds (write 5s)\n" +
				"a.yaml:3: choice: unknown choice \"pink\" (want red, green or blue)\n" +
				"a.yaml:4: max_size[0]: is empty (write a value or leave the key out)\na.yaml:4: max_size[1]: has no value (want a text, or leave the key out)"},
		{"unknown keys", "maxSize: 1\nduratoin: 1\ncolour: red\nother_things: 1",
			"a.yaml:1: maxSize: unknown key \"maxSize\" (did you mean max_size?)\na.yaml:2: duratoin: unknown key \"duratoin\" (did you mean duration?)\n" +
				"a.yaml:3: colour: unknown key \"colour\" (write choice)\n" +
				"a.yaml:4: other_things: unknown key \"other_things\" (want text, choice, bool, int, duration or max_size)"},
		{"twice", "text: a\ntext: b", "a.yaml:2: text: duplicate key \"text\" (first at line 1; keep one)"},
		{"merge and alias", "foreign: &x {text: a, int: 1}\n<<: *x\nint: 2", ""},
		{"endless", "foreign: &x [*x]", "a.yaml:1: foreign[0]: alias *x refers to itself"},
		{"two documents", "text: a\n---\ntext: b", "a.yaml:2: a second YAML document (write one document a file)"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			report, _ := decode(row.text)
			if got := report.Problems().Error(); got != row.want {
				t.Errorf("got %s\nwant %s\n%s", got, row.want, row.text)
			}
		})
	}
}

func TestOnly(t *testing.T) {
	report := document.NewReport()
	root, _ := document.Read(report, "a", []byte("type: x\na: 1\nb: 2\nc: 3"))
	o, _ := root.Object()
	for _, key := range []string{"type", "a", "b"} {
		o.Get(key)
	}
	o.Only("type x", "type", "a") // c is for Close to report
	if got := report.Problems().Error(); got != "a:3: b: does not go with type x (leave it out)" {
		t.Errorf("got %s", got)
	}
}

func TestSeveralFiles(t *testing.T) {
	report := document.NewReport()
	first, _ := document.Read(report, "b", []byte("x: 1\n# two lines\nk: {a: 1, b: [2]}"))
	second, _ := document.Read(report, "a", []byte("k: {b: [2], a: 1}"))
	var of []document.Value
	for _, root := range []document.Value{second, first} {
		o, _ := root.Object()
		v, _ := o.Get("k")
		v.Warnf("seen")
		v.Warnf("seen")
		of = append(of, v)
	}
	if !of[0].Equal(of[1]) || first.Equal(second) {
		t.Error("Equal is wrong")
	}
	if report.Problems() != nil {
		t.Errorf("got problems %v", report.Problems())
	}
	if got := report.Warnings().Error(); got != "b:3: k: warning: seen\na:1: k: warning: seen" {
		t.Errorf("got %s", got)
	}
}

func TestJSON(t *testing.T) {
	rows := []struct{ text, want string }{
		{"{b: 1.50, a: [0x10, 1_000, ~, True, x<y, '1'], c: 1e3}", `{"b":1.50,"a":[16,1000,null,true,"x<y","1"],"c":1e3}`},
		{".inf", ""},
		{"!mine x", ""},
	}
	for _, row := range rows {
		report := document.NewReport()
		root, _ := document.Read(report, "a", []byte(row.text))
		raw, ok := root.JSON()
		if string(raw) != row.want || ok == (row.want == "") || ok != (report.Problems() == nil) {
			t.Errorf("%s: got %s, %v, want %s; %v", row.text, raw, ok, row.want, report.Problems())
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"text: a\nint: 1", `{"text":"\ud83d\ude00","duration":5}`, "a: &x [*x]", "<<: [{a: 1}, {b: 2}]", "---\n---\n", "a: !!int none", "? [a]\n: b", "'",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		report, ok := decode(text)
		problems := report.Problems()
		if !ok && problems == nil {
			if root, there := document.Read(document.NewReport(), "a.yaml", []byte(text)); there {
				t.Errorf("refused without a word: %q is %q", text, root.Scalar())
			}
		}
		for _, p := range problems {
			if p.Line < 1 || p.What == "" || !strings.HasPrefix(p.String(), "a.yaml:") {
				t.Errorf("%q: %#v", text, p)
			}
		}
		if root, there := document.Read(document.NewReport(), "a.yaml", []byte(text)); there {
			if raw, ok := root.JSON(); ok != json.Valid(raw) || !root.Equal(root) {
				t.Errorf("%q is %q, %v", text, raw, ok)
			}
		}
	})
}
