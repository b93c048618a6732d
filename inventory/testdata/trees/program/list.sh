#!/bin/sh
[ "$1" = --list ] || exit 9
cat <<'END'
{"_meta": {"hostvars": {"node-a": {"ansible_host": "192.0.2.11", "t": true}, "node-b": {}}},
 "all": {"children": ["ungrouped", "outer"]},
 "outer": {"children": ["kibo_node"], "vars": {"o": "outer", "ansible_group_priority": 3}},
 "kibo_node": ["node-a", "node-b"],
 "kibo_ctrl": {"hosts": ["ctrl1"], "vars": {"k": 1}}}
END
