package inventory

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// Ansible reads YAML 1.1: no, on, 0022, 1:30 are a boolean and numbers there, while 1e3 and 0o17 are text.
// What a plain scalar means is decided here and nowhere else, so that both read the same inventory.
var (
	yamlBool  = regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)
	yamlNull  = regexp.MustCompile(`^(?:~|null|Null|NULL|)$`)
	yamlInt   = regexp.MustCompile(`^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)
	yamlFloat = regexp.MustCompile(`^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	yamlDate  = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:$|[Tt \t])`)
	likeNum   = regexp.MustCompile(`^[-+]?(?:0[xob])?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?$`)
)

// plain reports whether a scalar was written without quotes and without a tag.
func plain(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode &&
		n.Style&(yaml.TaggedStyle|yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

// scalarKind is the YAML 1.1 type of a scalar: str, bool, int, float, null or date; "" if n is no scalar.
func scalarKind(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	if !plain(n) {
		if k := strings.TrimPrefix(n.ShortTag(), "!!"); n.Style&yaml.TaggedStyle != 0 && k != "" {
			return k
		}
		return "str"
	}
	s := n.Value
	switch {
	case yamlNull.MatchString(s):
		return "null"
	case yamlBool.MatchString(s):
		return "bool"
	case yamlInt.MatchString(s):
		return "int"
	case yamlFloat.MatchString(s):
		return "float"
	case yamlDate.MatchString(s):
		return "date"
	}
	return "str"
}

// scalar is the value of a scalar as Ansible would have it.
func scalar(n *yaml.Node) (any, error) {
	s := n.Value
	switch kind := scalarKind(n); kind {
	case "null":
		return nil, nil
	case "bool":
		switch strings.ToLower(s) {
		case "yes", "true", "on":
			return true, nil
		case "no", "false", "off":
			return false, nil
		}
		return nil, fmt.Errorf("%q is no boolean", s)
	case "int":
		return intValue(s)
	case "float":
		return floatValue(s)
	case "str", "date", "timestamp", "!unsafe":
		return s, nil
	case "!vault", "!vault-encrypted":
		return nil, errVault
	default:
		return nil, fmt.Errorf("the tag %s is not known here", kind)
	}
}

// intValue reads a YAML 1.1 integer; one that does not fit stays a number in text form.
func intValue(s string) (any, error) {
	t := strings.ReplaceAll(s, "_", "")
	sign := int64(1)
	switch {
	case strings.HasPrefix(t, "-"):
		sign, t = -1, t[1:]
	case strings.HasPrefix(t, "+"):
		t = t[1:]
	}
	if strings.Contains(t, ":") {
		total := int64(0)
		for _, part := range strings.Split(t, ":") {
			v, err := strconv.ParseInt(part, 10, 32)
			if err != nil || total > math.MaxInt64/100 {
				return nil, fmt.Errorf("%q is no integer", s)
			}
			total = total*60 + v
		}
		return int(sign * total), nil
	}
	base := 10
	switch {
	case strings.HasPrefix(t, "0b"):
		base, t = 2, t[2:]
	case strings.HasPrefix(t, "0x"):
		base, t = 16, t[2:]
	case len(t) > 1 && t[0] == '0':
		base, t = 8, t[1:]
	}
	v, err := strconv.ParseInt(t, base, 64)
	if err != nil {
		if base == 10 && t != "" {
			return json.Number(strings.TrimPrefix(s, "+")), nil
		}
		return nil, fmt.Errorf("%q is no integer", s)
	}
	return int(sign * v), nil
}

func floatValue(s string) (any, error) {
	t := strings.ToLower(strings.ReplaceAll(s, "_", ""))
	if strings.Contains(t, ":") {
		return nil, fmt.Errorf("%q is a base-60 number in YAML; quote it", s)
	}
	if strings.HasSuffix(t, ".inf") || t == ".nan" {
		return nil, fmt.Errorf("%q is no finite number", s)
	}
	v, err := strconv.ParseFloat(t, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no number", s)
	}
	return v, nil
}

// hidden reports whether a character is one that nobody sees: controls, no-break and zero-width spaces.
func hidden(r rune) bool {
	return r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) ||
		(unicode.IsSpace(r) && r != ' ')
}
