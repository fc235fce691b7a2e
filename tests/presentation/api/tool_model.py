"""The test model with other chat templates."""

import struct
from pathlib import Path

ALIGNMENT = 32
HERMES = """{%- if tools %}<|im_start|>system
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
"""With tools, in the form that Hermes and Qwen made common."""
MISTRAL = """{%- if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls or [] %}
{%- if call.id | length != 9 %}{{ raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}{% endif %}
[TOOL_CALLS]{{ call.function.name }}[ARGS]{{ call.function.arguments | tojson }}
{%- endfor %}<|im_end|>
{% endfor %}<|im_start|>assistant
"""
"""With tools, in Mistral's newer form."""
THINKING = """{% for _ in [1, 2, 3] %}Question: Are you well?
<think>
I am fine.
</think>

Yes, very well.<|im_end|>
{% endfor %}Question: {{ messages[-1].content }}
{% if add_generation_prompt %}<think>
{% endif %}"""
"""It begins the thinking itself, and shows the small model how to end it."""


def with_template(gguf: Path, template_text: str, target: Path) -> Path:
    """A copy of the file with this template. It is filled up with blanks to a length that keeps the tensors aligned."""
    data = gguf.read_bytes()
    at = data.index(b"tokenizer.chat_template") + len(b"tokenizer.chat_template") + 4
    (old,) = struct.unpack_from("<Q", data, at)
    template = template_text.encode()
    template = b"{#" + b" " * ((old - len(template) - 4) % ALIGNMENT) + b"#}" + template
    target.write_bytes(data[:at] + struct.pack("<Q", len(template)) + template + data[at + 8 + old :])
    return target
