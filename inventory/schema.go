package inventory

import (
	"bytes"
	"encoding/json"
)

// Schema is a JSON Schema (draft 2020-12) of an inventory in Ansible's YAML form with our variables typed and unknown
// kibo_ names refused, for editors. It is made from the table of variables.
func Schema() ([]byte, error) {
	vars, known := map[string]any{}, []string{}
	for _, v := range Variables() {
		if v.Standing == NoEffect {
			continue
		}
		s := v.typed()
		s["description"] = v.Doc
		for _, n := range v.spellings() {
			vars[n] = s
			known = append(known, n)
		}
	}
	null := map[string]any{"type": "null"}
	ref := func(to string) map[string]any { return map[string]any{"$ref": "#/$defs/" + to} }
	one := map[string]any{"type": "string"} // to Ansible a plain word is a mapping with one entry
	mapOf := func(of map[string]any) map[string]any {
		return map[string]any{"anyOf": []any{null, one, map[string]any{"type": "object", "additionalProperties": of}}}
	}
	group := map[string]any{"type": []string{"object", "null"}, "properties": map[string]any{
		"hosts":    mapOf(map[string]any{"anyOf": []any{null, ref("vars")}}),
		"vars":     map[string]any{"anyOf": []any{null, one, ref("vars")}},
		"children": mapOf(ref("group")),
	}}
	doc := map[string]any{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "Ansible inventory with kibo-rollout's variables",
		"type":                 "object",
		"additionalProperties": ref("group"),
		"$defs": map[string]any{
			"group": group,
			"vars": map[string]any{
				"type":       "object",
				"properties": vars,
				"propertyNames": map[string]any{"anyOf": []any{
					map[string]any{"not": map[string]any{"pattern": "^kibo_"}},
					map[string]any{"enum": known},
				}},
			},
		},
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(doc)
	return b.Bytes(), err
}

// typed is the schema of a variable's value.
func (v Variable) typed() map[string]any {
	if v.schema != nil {
		return v.schema()
	}
	return kindSchema(v.Kind, v.Values)
}

func kindSchema(k Kind, values []string) map[string]any {
	text := map[string]any{"type": "string"}
	words := map[string]any{"type": "array", "items": map[string]any{"type": []string{"string", "integer"}}, "minItems": 1}
	switch k {
	case Path:
		return map[string]any{"type": "string", "pattern": "^/."}
	case Number:
		return map[string]any{"type": []string{"integer", "string"}, "pattern": "^(0|[1-9][0-9]*)$"}
	case Boolean:
		return map[string]any{"type": []string{"boolean", "string"}}
	case Duration:
		return map[string]any{"type": []string{"integer", "string"}, "pattern": `^([1-9][0-9]*|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`}
	case Command:
		return map[string]any{"anyOf": []any{text, words}}
	case PartList:
		list := map[string]any{"type": "array", "items": map[string]any{"enum": partNames()}}
		return map[string]any{"anyOf": []any{text, list}}
	case Choice:
		return map[string]any{"enum": values}
	case Mapping:
		return map[string]any{"type": "object"}
	}
	return text
}

// keySchema is a mapping with known keys.
func keySchema(keys []string, of map[string]any) map[string]any {
	props := map[string]any{}
	for _, k := range keys {
		props[k] = of
	}
	return map[string]any{"type": "object", "properties": props, "additionalProperties": false}
}

func partSchema(of map[string]any) map[string]any { return keySchema(partNames(), of) }

func commandSchema() map[string]any {
	return partSchema(keySchema(Operations(), kindSchema(Command, nil)))
}

func hookSchema() map[string]any {
	return map[string]any{
		"type": "object", "propertyNames": map[string]any{"pattern": hookName.String()},
		"additionalProperties": kindSchema(Command, nil),
	}
}
