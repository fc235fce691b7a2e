"""The test model with a chat template that knows tools, in the form that Hermes and Qwen made common."""

import struct
from pathlib import Path

ALIGNMENT = 32
TEMPLATE = """{%- if tools %}<|im_start|>system
You may call functions:
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
Write each call as
<tool_call>
{"name": name, "arguments": arguments}
</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def with_tools(gguf: Path, target: Path) -> Path:
    """A copy of the file with this template. It is filled up with blanks to a length that keeps the tensors aligned."""
    data = gguf.read_bytes()
    at = data.index(b"tokenizer.chat_template") + len(b"tokenizer.chat_template") + 4
    (old,) = struct.unpack_from("<Q", data, at)
    template = TEMPLATE.encode()
    template = b"{#" + b" " * ((old - len(template) - 4) % ALIGNMENT) + b"#}" + template
    target.write_bytes(data[:at] + struct.pack("<Q", len(template)) + template + data[at + 8 + old :])
    return target
